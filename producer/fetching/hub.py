"""The Hugging Face hub: where it is, and the token that it alone is shown."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import SecretStr

from contract.models import usable_address
from producer.fetching.addresses import Address, hub_url, origin
from producer.fetching.errors import FetchError


@dataclass(frozen=True, kw_only=True)
class Hub:
    """`endpoint` and `token` are the variables of the hub's own tools: HF_ENDPOINT and HF_TOKEN."""

    endpoint: str = "https://huggingface.co"
    token: SecretStr | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Hub":
        """The hub that the environment names; FetchError if that is no address."""
        endpoint, token = environment.get("HF_ENDPOINT", "").strip(), environment.get("HF_TOKEN", "").strip()
        try:
            named = usable_address(endpoint) if endpoint else cls.endpoint
        except ValueError:
            raise FetchError("HF_ENDPOINT must be an address such as https://huggingface.co") from None
        if not token.isascii() or not token.isprintable():
            raise FetchError("HF_TOKEN holds characters that no token has; set it anew, or take it away")
        return cls(endpoint=named, token=SecretStr(token) if token else None)

    def url(self, address: Address) -> str:
        """Where the file at `address` is served."""
        return address.source if address.hub is None else hub_url(self.endpoint, address.hub)

    def credentials(self, address: Address, url: str) -> dict[str, str]:
        """The header with the token for a request to `url`: none but the hub gets it, wherever it redirects to."""
        if self.token is None or address.hub is None or origin(url) != origin(self.endpoint):
            return {}
        return {"Authorization": f"Bearer {self.token.get_secret_value()}"}

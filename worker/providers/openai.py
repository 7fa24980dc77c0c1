"""Any OpenAI-compatible server: llama.cpp, vLLM, hosted ones."""

import weakref
from collections.abc import Callable, Mapping
from types import MappingProxyType

import httpx2
import openai

from contract.completion import Completion
from contract.models import OpenAIModel
from worker.providers.base import Description, Endpoint, MisconfiguredError, Request
from worker.providers.deadline import DeadlineTransport, deadline
from worker.providers.openai_body import BudgetName, further_fields
from worker.providers.openai_chunks import collected
from worker.providers.openai_description import described
from worker.providers.openai_errors import BudgetNameError, translated

_CONNECT_TIMEOUT_S = 10.0
_LIST_TIMEOUT_S = 10.0
_CONNECTIONS = 256
_NO_KEY = "none"
_SHORTEST_SECRET = 4  # characters: to hide "1" or "on" would hide nothing and make every message unreadable
_SENT_HEADERS = frozenset(
    ("accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host", "user-agent")
)
_ABSENT = frozenset((404, 405, 410, 501))
_ABSENT_OR_CLOSED = _ABSENT | {301, 302, 303, 307, 308, 400, 401, 403}


class OpenAIProvider:
    """One model behind one address. The client is shared by all threads of a process.

    `headers` are sent with every call; they hold no variables any more, and their values are kept as secret as the
    key. One that is called authorization, in any case, takes the place of the key. MisconfiguredError for a key or a
    header that no request can carry.
    """

    def __init__(
        self,
        model: OpenAIModel,
        *,
        base_url: str,
        api_key: str | None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._model = model.model
        self._constrains_by = model.constrains_by
        # Read and written by all threads without a lock: it changes once, and whoever still read the older name only
        # makes the same discovery again.
        self._budget: BudgetName = "max_tokens"
        url = httpx2.URL(base_url)
        label = f"{url.host}:{url.port}" if url.port else url.host
        self.endpoint = Endpoint(provider="openai", model=model.model, label=label)
        key = api_key or _NO_KEY
        own = _own_headers(model.name, key, headers)
        self._secrets = _secrets(api_key or "", *headers.values())
        self._props_url = f"{base_url.rstrip('/').removesuffix('/v1')}/props"
        http = httpx2.Client(
            transport=DeadlineTransport(connections=_CONNECTIONS),
            follow_redirects=False,
            event_hooks={"request": [_strip_headers(own)]},
        )
        self._client = openai.OpenAI(api_key=key, base_url=base_url, max_retries=0, http_client=http)
        # The SDK leaves a client that it was given open.
        weakref.finalize(self, http.close)

    def complete(self, request: Request) -> Completion:
        """Ask once, over a stream, and be back within `request.timeout_s` however slowly the server answers."""
        sampling = request.sampling
        secrets = (*self._secrets, request.prompt)
        try:
            with translated(*secrets, where=self.endpoint.label), deadline(request.timeout_s):
                stream = self._client.chat.completions.create(
                    model=self._model,
                    messages=[{"role": "user", "content": request.prompt}],
                    temperature=sampling.temperature,
                    top_p=openai.omit if sampling.top_p is None else sampling.top_p,
                    seed=request.seed,
                    stream=True,
                    stream_options={"include_usage": True},
                    extra_body=further_fields(request, budget=self._budget, constrains_by=self._constrains_by),
                    timeout=httpx2.Timeout(request.timeout_s, connect=min(_CONNECT_TIMEOUT_S, request.timeout_s)),
                )
                with stream:
                    return collected(stream)
        except BudgetNameError:
            self._budget = "max_completion_tokens"
            raise

    def models(self) -> list[str] | None:
        """The ids that the server lists."""
        with translated(*self._secrets, where=self.endpoint.label), deadline(_LIST_TIMEOUT_S):
            return [model.id for model in self._client.models.list(timeout=_LIST_TIMEOUT_S)]

    def describe(self) -> Description:
        """What the server's list tells of the model and, where it is llama.cpp, its `/props`; within ten seconds."""
        with translated(*self._secrets, where=self.endpoint.label), deadline(_LIST_TIMEOUT_S):
            listed = self._told("/models", _ABSENT)
            props = self._told(self._props_url, _ABSENT_OR_CLOSED)
        return described(self._model, listed=listed, props=props)

    def _told(self, path: str, absent: frozenset[int]) -> object:
        """What the server answers there, JSON or text; None where its status is one of the `absent`."""
        try:
            return self._client.get(path, cast_to=object, options={"timeout": _LIST_TIMEOUT_S})
        except openai.APIStatusError as error:
            if error.status_code in absent:
                return None
            raise


def _own_headers(model: str, key: str, headers: Mapping[str, str]) -> httpx2.Headers:
    """The key and the study's headers; MisconfiguredError, without the value, for one that cannot be sent."""
    own = {"authorization": f"Bearer {key}"} | {name.lower(): value for name, value in headers.items()}
    for name, value in own.items():
        if not (value.isascii() and value.isprintable()):
            raise MisconfiguredError(
                f"model {model}: the key or the header {name} holds a line break or a character that HTTP cannot send",
                credential=True,
            )
    return httpx2.Headers(own)


def _secrets(*values: str) -> tuple[str, ...]:
    """The texts to hide, longest first: the values, and the credentials alone where a scheme stands before them."""
    parts = {part for value in values for part in (value, value.partition(" ")[2])}
    return tuple(sorted((part for part in parts if len(part) >= _SHORTEST_SECRET), key=len, reverse=True))


def _strip_headers(own: httpx2.Headers) -> Callable[[httpx2.Request], None]:
    """Send what the protocol needs and our `own`, nothing that the SDK took from the environment for another server."""

    def strip(request: httpx2.Request) -> None:
        for name in set(request.headers) - _SENT_HEADERS:
            del request.headers[name]
        request.headers.update(own)

    return strip

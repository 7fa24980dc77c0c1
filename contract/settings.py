"""Settings that every program reads: where Postgres and the broker are. Read once, refused early."""

from pathlib import Path

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from contract.errors import StackError

STACK_FILE = "stack.env"
"""The file in the state folder in which a running embedded stack tells its addresses."""


class Settings(BaseSettings):
    """Addresses, from BOTHWAYS_* variables or from the embedded stack that runs on this state folder."""

    model_config = SettingsConfigDict(env_prefix="BOTHWAYS_", extra="ignore", frozen=True)

    database_url: SecretStr = Field(min_length=1)
    broker_url: SecretStr = Field(min_length=1)
    embedded_url: str | None = None
    simulated_ledger: Path | None = None


class _StateFolder(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="BOTHWAYS_", extra="ignore")

    state: Path = Path(".bothways")


def state_folder() -> Path:
    """The folder of the embedded stack: BOTHWAYS_STATE, or `.bothways` in the current folder."""
    return _StateFolder().state.expanduser().resolve()


def load_settings() -> Settings:
    """The settings in force; StackError when no database is named anywhere."""
    try:
        return Settings(_env_file=state_folder() / STACK_FILE)  # type: ignore[call-arg]
    except ValidationError as error:
        missing = ", ".join(f"BOTHWAYS_{str(part['loc'][0]).upper()}" for part in error.errors())
        raise StackError(
            f"no database and broker to work with: start `bothways up` in another terminal, or set {missing}"
            f" (looked for a running stack in {state_folder()})"
        ) from None

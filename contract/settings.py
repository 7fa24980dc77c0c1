"""Settings that every program reads: where Postgres and the broker are. Read once, refused early."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from contract.errors import StackError, UnusableStackError, UsageError
from contract.models import usable_address

POOLS_FILE = Path("pools.yaml")
"""The pools file in the current folder, where BOTHWAYS_POOLS names no other."""

STACK_FILE = "stack.env"
"""The file in the state folder in which a running embedded stack tells its addresses."""


def _beginning_with(*schemes: str) -> Callable[[SecretStr], SecretStr]:
    """Check an address without ever printing it: it may hold a password."""

    def check(address: SecretStr) -> SecretStr:
        if not address.get_secret_value().startswith(schemes):
            raise ValueError(f"must begin with {' or '.join(schemes)}")
        try:
            _ = urlsplit(address.get_secret_value()).port
        except ValueError:
            raise ValueError("its port must be a number, and a password in it escaped") from None
        return address

    return check


def _with_port(url: str) -> str:
    """Ollama's own port where an address names none; behind https stands something else, on its usual port."""
    parts = urlsplit(url)
    return f"http://{parts.hostname}:11434{parts.path}" if parts.scheme == "http" and parts.port is None else url


def _plain(value: str | SecretStr) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def _with_password(address: str, password: str) -> str:
    """`address` with the password, escaped as an address needs it, where it names none."""
    scheme, separator, rest = address.partition("://")
    place = re.split(r"[/?#]", rest, maxsplit=1)[0]
    login, _, host = place.rpartition("@")
    user, _, own = login.partition(":")
    return address if own else f"{scheme}{separator}{user}:{quote(password, safe='')}@{host}{rest[len(place) :]}"


class Settings(BaseSettings):
    """Addresses, from BOTHWAYS_* variables or from the embedded stack that runs on this state folder.

    `password`: that of Postgres and the broker, for an address that names none. `lease_margin_s`: how long after its
    time a worker's call is taken for lost. `ollama_url`: the Ollama server beside the worker of a GPU host. `machine`:
    what this machine is called beside the others, its own name if left out; hosts are told apart by it. `patience`: a
    factor on how long a worker leaves alone what failed, holds a model, and trusts what it saw of its host; smaller for
    trials of just that.
    """

    # A variable that is empty is one that was not set: compose files cannot leave one out.
    model_config = SettingsConfigDict(env_prefix="BOTHWAYS_", env_ignore_empty=True, extra="ignore", frozen=True)

    database_url: Annotated[SecretStr, AfterValidator(_beginning_with("postgresql://", "postgresql+psycopg://"))]
    broker_url: Annotated[SecretStr, AfterValidator(_beginning_with("redis://", "rediss://"))]
    password: SecretStr | None = None
    embedded_url: str | None = None
    simulated_ledger: Path | None = None
    lease_margin_s: Annotated[float, Field(ge=1)] = 30.0
    ollama_url: Annotated[str, AfterValidator(usable_address), AfterValidator(_with_port)] = "http://127.0.0.1:11434"
    machine: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")] | None = None
    patience: Annotated[float, Field(gt=0, le=1)] = 1.0

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, given: dict[str, Any]) -> dict[str, Any]:
        known = {name: _plain(given[name]) for name in ("database_url", "broker_url", "password") if name in given}
        password = known.pop("password", "")
        return given | {name: _with_password(address, password) for name, address in known.items() if password}


class _StateFolder(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="BOTHWAYS_", extra="ignore")

    state: Path = Path(".bothways")


def state_folder() -> Path:
    """The folder of the embedded stack: BOTHWAYS_STATE, or `.bothways` in the current folder."""
    return _StateFolder().state.expanduser().resolve()


class _PoolsFile(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="BOTHWAYS_", extra="ignore")

    pools: Path | None = None


def pools_file() -> Path | None:
    """The file that names the quotas: BOTHWAYS_POOLS, else `pools.yaml` in the current folder; None if neither is."""
    return _PoolsFile().pools or (POOLS_FILE if POOLS_FILE.is_file() else None)


class _CacheFolder(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="BOTHWAYS_", env_ignore_empty=True, extra="ignore")

    cache: Path | None = None
    xdg: Annotated[Path | None, Field(validation_alias="XDG_CACHE_HOME")] = None


def cache_folder() -> Path:
    """The folder of fetched data files: BOTHWAYS_CACHE, or `bothways` where caches are on this machine."""
    named = _CacheFolder()
    try:
        if named.cache is not None:
            return named.cache.expanduser().resolve()
        usual = named.xdg if named.xdg is not None and named.xdg.is_absolute() else Path("~/.cache").expanduser()
        return usual / "bothways"
    except (RuntimeError, OSError):
        raise UsageError("there is no folder for fetched files: set BOTHWAYS_CACHE to one") from None


def load_settings() -> Settings:
    """The settings in force; StackError when no database is named anywhere, UnusableStackError for a wrong value."""
    try:
        return Settings(_env_file=state_folder() / STACK_FILE)  # type: ignore[call-arg]
    except ValidationError as error:
        raise _what_is_wrong(error) from None


def _what_is_wrong(error: ValidationError) -> StackError:
    """An error of one line that names variables and never their values."""
    faults = {f"BOTHWAYS_{str(fault['loc'][0]).upper()}": fault for fault in error.errors()}
    wrong = [f"{name}: {_fault(fault)}" for name, fault in faults.items() if fault["type"] != "missing"]
    if wrong:
        return UnusableStackError("; ".join(wrong))
    return StackError(
        f"no database and broker to work with: start `bothways up` in another terminal, or set {', '.join(faults)}"
        f" (looked for a running stack in {state_folder()})"
    )


def _fault(fault: ErrorDetails) -> str:
    return str(fault["ctx"]["error"]) if fault["type"] == "value_error" else fault["msg"]

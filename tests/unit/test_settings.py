"""Settings: what is wrong is named by its variable, and no secret is ever printed."""

from pathlib import Path

import pytest
from redis import Redis
from sqlalchemy.engine import make_url

from contract.errors import StackError, UnusableStackError
from contract.settings import load_settings, pools_file


@pytest.fixture(autouse=True)
def addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Addresses that can be used, and no stack."""
    monkeypatch.setenv("BOTHWAYS_STATE", str(tmp_path))
    monkeypatch.setenv("BOTHWAYS_DATABASE_URL", "postgresql://me:secret@host/bothways")
    monkeypatch.setenv("BOTHWAYS_BROKER_URL", "redis://:secret@host/0")


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().lease_margin_s == 30

    monkeypatch.setenv("BOTHWAYS_LEASE_MARGIN_S", "5")

    assert load_settings().lease_margin_s == 5


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("BOTHWAYS_LEASE_MARGIN_S", "soon", "BOTHWAYS_LEASE_MARGIN_S: Input should be a valid number"),
        ("BOTHWAYS_LEASE_MARGIN_S", "0", "BOTHWAYS_LEASE_MARGIN_S: Input should be greater than or equal to 1"),
        ("BOTHWAYS_BROKER_URL", "redis://:secret@host:6379:6380/0", "BOTHWAYS_BROKER_URL: its port must be a number"),
        ("BOTHWAYS_BROKER_URL", "amqp://:secret@host", "BOTHWAYS_BROKER_URL: must begin with redis:// or rediss://"),
    ],
)
def test_what_cannot_be_used_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(UnusableStackError) as raised:
        load_settings()

    assert str(raised.value).startswith(said)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://gpu1", "http://gpu1:11434"),
        ("http://gpu1:8080", "http://gpu1:8080"),
        ("https://gpu1.example.org/ollama", "https://gpu1.example.org/ollama"),
    ],
)
def test_an_ollama_server_is_at_its_own_port_if_nothing_else_is_said(
    monkeypatch: pytest.MonkeyPatch, given: str, used: str
) -> None:
    monkeypatch.setenv("BOTHWAYS_OLLAMA_URL", given)

    assert load_settings().ollama_url == used


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("redis://control:6379/0", "redis://:p%40%2F%3A%25%20w@control:6379/0"),
        ("rediss://control", "rediss://:p%40%2F%3A%25%20w@control"),
        ("redis://someone@control/0", "redis://someone:p%40%2F%3A%25%20w@control/0"),
        ("redis://[::1]:6379/0", "redis://:p%40%2F%3A%25%20w@[::1]:6379/0"),
        ("redis://:own@control/0", "redis://:own@control/0"),
        ("redis://control?client_name=a@b", "redis://:p%40%2F%3A%25%20w@control?client_name=a@b"),
    ],
)
def test_the_password_goes_escaped_into_an_address_that_names_none(
    monkeypatch: pytest.MonkeyPatch, given: str, used: str
) -> None:
    monkeypatch.setenv("BOTHWAYS_PASSWORD", "p@/:% w")
    monkeypatch.setenv("BOTHWAYS_BROKER_URL", given)

    assert load_settings().broker_url.get_secret_value() == used


def test_the_password_reaches_both_servers_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = 'p@ss/w:or"d\\ %41'
    monkeypatch.setenv("BOTHWAYS_PASSWORD", hostile)
    monkeypatch.setenv("BOTHWAYS_BROKER_URL", "redis://control:6379/0")
    monkeypatch.setenv("BOTHWAYS_DATABASE_URL", "postgresql+psycopg://bothways@control/bothways?sslmode=verify-full")

    settings = load_settings()

    with Redis.from_url(settings.broker_url.get_secret_value()) as broker:
        assert broker.connection_pool.connection_kwargs["password"] == hostile
    database = make_url(settings.database_url.get_secret_value())
    assert (database.password, database.query) == (hostile, {"sslmode": "verify-full"})


def test_a_variable_that_is_empty_was_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOTHWAYS_PASSWORD", "")
    monkeypatch.setenv("BOTHWAYS_MACHINE", "")
    monkeypatch.setenv("BOTHWAYS_BROKER_URL", "redis://control:6379/0")

    settings = load_settings()

    assert settings.broker_url.get_secret_value() == "redis://control:6379/0"
    assert settings.machine is None


def test_an_address_that_is_empty_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOTHWAYS_BROKER_URL", "")

    with pytest.raises(StackError, match="or set BOTHWAYS_BROKER_URL"):
        load_settings()


def test_the_pools_file_is_the_one_that_is_named_else_the_one_that_is_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BOTHWAYS_POOLS", raising=False)
    none = pools_file()
    (tmp_path / "pools.yaml").touch()
    here = pools_file()
    monkeypatch.setenv("BOTHWAYS_POOLS", "/elsewhere/pools.yaml")

    assert (none, here) == (None, Path("pools.yaml"))
    assert pools_file() == Path("/elsewhere/pools.yaml")

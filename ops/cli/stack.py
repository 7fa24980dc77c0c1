"""The embedded stack with its workers, as `up` and `demo` run it."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from contract.errors import StackError
from contract.settings import Settings, load_settings
from ops.cli.connect import Connected, connect
from ops.local.stack import LocalStack
from ops.monitoring.flower import USER, password_path, start_flower
from ops.schema import migrate

WORKER_GRACE_S = 20


@contextmanager
def embedded_stack(state: Path, *, slots: int, providers: tuple[str, ...]) -> Iterator[tuple[LocalStack, Connected]]:
    """Start the engines, bring the schema up to date, start one worker a provider; stop everything at the end."""
    stack = LocalStack(state)
    with stack:
        os.environ["BOTHWAYS_STATE"] = str(state)
        connected = connect(_settings_of(stack))
        migrate(connected.engine)
        for provider in providers:
            _spawn_worker(stack, provider, slots)
        try:
            yield stack, connected
        finally:
            connected.engine.dispose()


@contextmanager
def monitor(state: Path, stack: LocalStack) -> Iterator[str]:
    """Flower beside the stack until the block ends; yields the line that tells where it is, or why there is none.

    The stack works without it: a Flower that is not installed, does not start or ends by itself stops nothing.
    """
    with ExitStack() as running:
        try:
            flower = running.enter_context(start_flower(state, _environment(stack)))
            line = f"Flower shows the bundles at {flower.url}: user {USER}, password in {password_path(state)}"
        except (StackError, OSError) as error:
            line = f"no Flower: {error}"
        yield line


def raise_if_a_child_died(stack: LocalStack) -> None:
    """StackError that names a part of the stack that ended by itself, with the end of its log."""
    for child in stack.failed_children():
        raise StackError(f"{child.name} ended by itself (code {child.code}); its log is {child.log}:\n{child.tail}")


def _settings_of(stack: LocalStack) -> Settings:
    """The settings of this very stack, whatever database the environment names."""
    os.environ.update(_environment(stack))
    return load_settings()


def _environment(stack: LocalStack) -> dict[str, str]:
    addresses = stack.addresses
    return {
        "BOTHWAYS_DATABASE_URL": addresses.database_url,
        "BOTHWAYS_BROKER_URL": addresses.broker_url,
        "BOTHWAYS_EMBEDDED_URL": addresses.embedded_url,
    }


def _spawn_worker(stack: LocalStack, provider: str, slots: int) -> None:
    options = ["--provider", provider, "--slots", str(slots), "--grace", str(WORKER_GRACE_S), "--name", provider]
    command = [sys.executable, "-m", "ops.cli", "worker", *options]
    stack.spawn(f"worker-{provider}", command, env=_environment(stack), grace=WORKER_GRACE_S + 5)

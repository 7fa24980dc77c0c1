"""The embedded stack with its workers, as `up` and `demo` run it."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from contract.errors import StackError
from contract.settings import Settings, load_settings
from ops.cli.connect import Connected, connect
from ops.cli.terminal import err, visible
from ops.local.stack import LocalStack
from ops.monitoring.flower import USER, password_path, start_flower
from ops.schema import migrate
from ops.waiting import SHOWN
from worker.providers.base import ProviderError
from worker.providers.ollama_host import OllamaHost
from worker.settings import GPU_HOST

WORKER_GRACE_S = 20
UP = ("openai", "gemini", "simulated", GPU_HOST)


@contextmanager
def embedded_stack(state: Path, *, slots: int, providers: tuple[str, ...]) -> Iterator[tuple[LocalStack, Connected]]:
    """Start the engines, bring the schema up to date, start one worker a provider; stop everything at the end.

    An Ollama server is somebody else's: it gets a worker if it is there.
    What ends by itself meanwhile is started again; when that is in vain the block is left with a StackError.
    """
    with LocalStack(state) as stack:
        os.environ["BOTHWAYS_STATE"] = str(state)
        connected = connect(_settings_of(stack), tables=False)
        migrate(connected.engine)
        for provider in providers:
            if provider != GPU_HOST or _host_answers(connected.settings):
                _spawn_worker(stack, provider, slots)
        try:
            with _kept(stack):
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


class _GaveUpError(BaseException):
    """Ends whatever the main thread does. No Exception: who waits for Postgres to come back must not catch it."""

    def __init__(self, reason: BaseException) -> None:
        super().__init__(reason)
        self.reason = reason


@contextmanager
def _kept(stack: LocalStack) -> Iterator[None]:
    """Have the stack kept alive; the block, in the main thread, ends with the reason when that was given up.

    The keeper's thread reaches the main one by a signal of its own, so Ctrl-C keeps its meaning, ignored or not.
    """

    def leave(_: int, __: FrameType | None) -> None:
        if stack.failure is not None:
            raise _GaveUpError(stack.failure)

    main = threading.get_ident()
    signal.signal(signal.SIGUSR1, leave)
    stack.keep(say=lambda line: err.print(visible(line)), gave_up=lambda: signal.pthread_kill(main, signal.SIGUSR1))
    try:
        try:
            yield
        finally:
            # The keeper goes with the stack. What it sends from here on must not disturb the stopping.
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    except _GaveUpError as given_up:
        raise given_up.reason from None


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


def _host_answers(settings: Settings) -> bool:
    """Whether an Ollama server is where the settings say."""
    host = OllamaHost(settings.ollama_url)
    try:
        models = host.tags()
    except ProviderError:
        return False
    finally:
        host.close()
    err.print(visible(f"Ollama at {host.label} serves {len(models)} models: {', '.join(sorted(models)[:SHOWN])}"))
    return True


def _spawn_worker(stack: LocalStack, provider: str, slots: int) -> None:
    options = ["--provider", provider, "--slots", str(slots), "--grace", str(WORKER_GRACE_S), "--name", provider]
    command = [sys.executable, "-m", "ops.cli", "worker", *options]
    stack.spawn(f"worker-{provider}", command, env=_environment(stack), grace=WORKER_GRACE_S + 5)

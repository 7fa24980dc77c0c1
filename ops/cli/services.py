"""Commands that serve: the embedded stack, workers, the dispatcher, the tables."""

import logging
import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from contract.database import place
from contract.errors import UsageError
from contract.settings import state_folder
from ops.cli.awaiting import AwaitS, await_stack, connect_service
from ops.cli.connect import connect
from ops.cli.fetching import Fetching
from ops.cli.machines import known_pools
from ops.cli.needs import needing
from ops.cli.studies import write_study_report
from ops.cli.terminal import Exit, err
from ops.schema import migrate as migrate_schema

Slots = Annotated[
    int, typer.Option(min=1, max=512, help="How many bundles at once; what the model server runs in parallel.")
]
Provider = Annotated[list[str] | None, typer.Option(help="Serve only this provider; may be given several times.")]


def up(slots: Slots = 4) -> None:
    """Run the embedded stack in the foreground: Postgres, Valkey, a small model, workers, dispatcher. Ctrl-C stops it.

    State is kept in .bothways, or in the folder that BOTHWAYS_STATE names. Where Flower is installed, it shows the
    bundles in a browser: read-only, with a password. Where an Ollama server answers (BOTHWAYS_OLLAMA_URL, by default on
    this machine), a worker serves its models too. Keys are read from the variables that study and pools file name.

    \b
    bothways up
    bothways up --slots 8
    """
    with needing("local,worker"):
        from ops.cli.stack import UP, embedded_stack, monitor
    from producer.dispatch import Dispatcher

    known_pools()  # a mistake in the file would end every worker that is started
    stopping = _stop_on_signals()
    with embedded_stack(state_folder(), slots=slots, providers=UP) as (stack, connected):
        dispatcher = Dispatcher(connected.engine, connected.celery(), connected.broker())
        dispatching = threading.Thread(target=dispatcher.run, args=(stopping,), daemon=True)
        dispatching.start()
        err.print(f"the stack is up on {state_folder()}; in another terminal: bothways run STUDY.yaml --wait")
        with monitor(state_folder(), stack) as where:
            err.print(where)
            while not stopping.wait(1.0):  # not without an end: a signal may reach another thread first
                pass
        err.print("stopping: calls in flight end, the rest is kept for the next start")
        dispatching.join(timeout=5)


def demo(
    study: Annotated[Path, typer.Argument(help="The study file.")] = Path("studies/demo.yaml"),
    out_dir: Annotated[Path, typer.Option("--out", help="Where the report goes.")] = Path("report/demo"),
) -> None:
    """Run a small study whole with the embedded stack: start, ask, report, stop. Ctrl-C stops; again resumes.

    \b
    bothways demo
    bothways demo studies/demo.yaml --out report/demo
    """
    with needing("local,worker,report"):
        from ops.cli.stack import embedded_stack
    from ops.cli.study import enqueue_study, follow_study
    from producer.study_file import read_study

    loaded = read_study(study, fetch=Fetching())
    known_pools()
    err.print("starting Postgres, Valkey and a small language model ...")
    try:
        with embedded_stack(state_folder(), slots=4, providers=("openai",)) as (_, connected):
            enqueue_study(connected, loaded)
            code = follow_study(connected, loaded.study.study)
            if code in (Exit.DONE, Exit.SOME_FAILED):
                write_study_report(connected, loaded.study.study, out_dir)
            err.print("stopping what was started ...")
    except KeyboardInterrupt:
        err.print("stopped; what is done is kept, the same command goes on from here")
        code = Exit.INTERRUPTED
    raise typer.Exit(code)


def worker(
    slots: Slots = 4,
    provider: Provider = None,
    grace: Annotated[float, typer.Option(min=5, help="Seconds from SIGTERM to the end of the process.")] = 30.0,
    name: Annotated[str, typer.Option(help="The worker's name; its machine and a token are added.")] = "worker",
    await_s: AwaitS = 0.0,
) -> None:
    """Run a worker: it takes bundles of every active study whose provider it serves.

    On a GPU host it stands beside an Ollama server (BOTHWAYS_OLLAMA_URL, by default the one on this machine) and serves
    one of its models at a time. Keys are read from the variables that the study file or the pools file names.

    \b
    bothways worker --provider openai --provider gemini --slots 64
    bothways worker --provider ollama --slots 8
    """
    from worker.app import run_worker
    from worker.settings import WorkerOptions

    providers = _served(provider)
    known_pools()  # a mistake in the file is told before anything is waited for
    connected = connect_service(await_s)
    connected.engine.dispose()
    options = WorkerOptions(slots=slots, providers=providers, name=name, grace_s=grace)
    raise typer.Exit(run_worker(connected.settings, options))


def _served(given: list[str] | None) -> tuple[str, ...]:
    """The providers that a worker serves; UsageError where it cannot."""
    from worker.providers import require_libraries
    from worker.settings import API_PROVIDERS, GPU_HOST

    providers = tuple(given or API_PROVIDERS)
    unknown = sorted(set(providers) - {*API_PROVIDERS, GPU_HOST})
    if unknown:
        raise UsageError(f"no provider {unknown[0]!r}; there are: {', '.join((*API_PROVIDERS, GPU_HOST))}")
    if GPU_HOST in providers and len(set(providers)) > 1:
        raise UsageError("a worker of a GPU host serves nothing else; start another worker for the other providers")
    require_libraries(providers)
    return providers


def dispatch(await_s: AwaitS = 0.0) -> None:
    """Run the dispatcher loop: it keeps the queues filled. A second one stands by and takes over.

    \b
    bothways dispatch
    bothways dispatch --await 600
    """
    from producer.dispatch import Dispatcher

    connected = connect_service(await_s)
    stopping = _stop_on_signals()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("producer").setLevel(logging.INFO)
    err.print(f"dispatching from {place(connected.engine)}; Ctrl-C stops")
    Dispatcher(connected.engine, connected.celery(), connected.broker()).run(stopping)


def migrate(await_s: AwaitS = 0.0) -> None:
    """Bring the database to this version's tables; running it again changes nothing.

    \b
    bothways migrate
    """
    connected = await_stack(lambda: connect(tables=False), await_s)
    migrate_schema(connected.engine)
    err.print(f"the tables at {place(connected.engine)} are up to date")


def _stop_on_signals() -> threading.Event:
    """An event that SIGINT, SIGTERM and a closed terminal set; a second one changes nothing, stopping is under way."""
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stopping.set())
    return stopping

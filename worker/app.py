"""A worker process, put together: Celery's thread pool around the evaluator. Nothing is opened before `run_worker`."""

import logging
import os
import threading
import time
from contextlib import suppress
from importlib.metadata import version
from typing import Any

from celery import Celery
from celery.signals import worker_shutting_down
from sqlalchemy.exc import SQLAlchemyError

from contract.broker import IDLE_QUEUE, create_celery
from contract.database import open_engine
from contract.settings import Settings
from worker.evaluate import Evaluator
from worker.providers import open_provider
from worker.queues import Registry, watching
from worker.settings import WorkerOptions
from worker.store import JobStore, look_up_by_key
from worker.tasks import register

MOST_CONNECTIONS = 8
"""Enough for any number of slots: a connection is held for milliseconds, never while a model is thinking."""
GIVE_BACK_RESERVE_S = 3.0

log = logging.getLogger(__name__)


def run_worker(settings: Settings, options: WorkerOptions) -> int:
    """Serve until SIGTERM; calls in flight end, the rest is given back. Returns the exit code."""
    name = f"{options.name}.{os.getpid()}"
    connections = min(options.slots, MOST_CONNECTIONS) + 1
    engine = open_engine(settings.database_url.get_secret_value(), pool_size=connections, ping=False, autocommit=True)
    look_up_by_key(engine)
    stopping = threading.Event()
    evaluator = Evaluator(
        JobStore(engine, worker=name, lease_margin_s=settings.lease_margin_s, autocommit=True),
        lambda model: open_provider(model, settings),
        stopping=stopping,
    )
    registry = Registry(
        engine=engine,
        worker=name,
        providers=options.providers,
        slots=options.slots,
        version=version("bothways"),
        pace=evaluator.pace,
    )
    app = create_celery(settings.broker_url.get_secret_value())
    register(app, evaluator)
    app.steps["consumer"].add(watching(registry))

    @worker_shutting_down.connect(weak=False)
    def leave(**_: Any) -> None:  # noqa: ANN401 - Celery's signal arguments
        stopping.set()
        threading.Thread(target=_leave_in_time, args=(evaluator, registry, options.grace_s), daemon=True).start()

    return _serve(app, options, name, registry)


def _serve(app: Celery, options: WorkerOptions, name: str, registry: Registry) -> int:
    # One line for every HTTP request would bury what matters; keys would not be in it, but addresses are. And a bundle
    # is told once, when it ended.
    for chatty in ("httpx2", "httpcore2", "openai", "celery.worker.strategy"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    worker = app.Worker(
        hostname=f"{name}@bothways",
        pool="threads",
        concurrency=options.slots,
        queues=[IDLE_QUEUE],
        loglevel="INFO",
        without_gossip=True,
        without_mingle=True,
        heartbeat_interval=30,  # so that monitors see a worker that has nothing to do
        task_events=True,
    )
    worker.start()
    with suppress(SQLAlchemyError):  # without Postgres the entry stays; it is out of date in half a minute anyway
        registry.leave()
    return int(worker.exitcode or 0)


def _leave_in_time(evaluator: Evaluator, registry: Registry, grace_s: float) -> None:
    """The end of the grace: what is still in hand goes back and the process leaves, whatever a call is waiting for."""
    time.sleep(max(0.0, grace_s - GIVE_BACK_RESERVE_S))
    log.warning("the grace of %.0f s is over: giving back what is in hand", grace_s)
    # Postgres may be what the rest waits for: after the reserve the process leaves all the same, and leases do it.
    threading.Timer(GIVE_BACK_RESERVE_S, os._exit, (0,)).start()
    evaluator.give_back_all()
    registry.leave()
    os._exit(0)

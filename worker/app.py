"""A worker process, put together: Celery's thread pool around the evaluator. Nothing is opened before `run_worker`."""

import logging
import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from celery import Celery
from celery.signals import worker_shutting_down
from redis import Redis
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from contract.broker import IDLE_QUEUE, create_celery
from contract.database import open_engine
from contract.pools import read_pools
from contract.settings import Settings, pools_file
from worker.consumer import SteadyConsumer
from worker.contact_store import TRIED_AGAIN_AFTER_S, ContactStore
from worker.evaluate import Evaluator
from worker.pools import Gate
from worker.providers import open_provider
from worker.queues import AnyQueue, Chooser, Registry, watching
from worker.settings import GPU_HOST, WorkerOptions
from worker.store import JobStore, look_up_by_key
from worker.tasks import register

if TYPE_CHECKING:
    from worker.hosts import Stock

MOST_CONNECTIONS = 8
"""Enough for any number of slots: a connection is held for milliseconds, never while a model is thinking."""
GIVE_BACK_RESERVE_S = 3.0
TRY_AGAIN_EVERY_S = 15.0
BROKER_TIMEOUT_S = 5.0

log = logging.getLogger(__name__)


def run_worker(settings: Settings, options: WorkerOptions) -> int:
    """Serve until SIGTERM; calls in flight end, the rest is given back. Returns the exit code.

    InputError for a pools file that cannot be used.
    """
    # Not the process id: in containers that is the same every time, also on the network of their machine.
    name = f"{options.name}.{settings.machine or socket.gethostname()}.{secrets.token_hex(3)}"
    connections = min(options.slots, MOST_CONNECTIONS) + 1
    engine = open_engine(settings.database_url.get_secret_value(), pool_size=connections, ping=False, autocommit=True)
    look_up_by_key(engine)
    stock = _stock(settings) if GPU_HOST in options.providers else None
    evaluator = _evaluator(engine, settings, options, name, endpoint="" if stock is None else stock.label)
    registry = Registry(
        engine=engine,
        worker=name,
        providers=options.providers,
        slots=options.slots,
        version=version("bothways"),
        pace=evaluator.pace,
        access=evaluator.access,
        chooser=AnyQueue() if stock is None else _gpu_host(engine, stock, evaluator, name, settings),
    )
    endpoint = registry.chooser.station.endpoint or ""
    try_again = (evaluator, options.providers, endpoint, settings.patience)
    threading.Thread(target=_try_again, args=try_again, daemon=True).start()
    app = create_celery(settings.broker_url.get_secret_value())
    register(app, evaluator)
    app.steps["consumer"].add(watching(registry))

    @worker_shutting_down.connect(weak=False)
    def leave(**_: Any) -> None:  # noqa: ANN401 - Celery's signal arguments
        evaluator.stopping.set()
        threading.Thread(target=_leave_in_time, args=(evaluator, registry, options.grace_s), daemon=True).start()

    return _serve(app, options, name, registry)


def _serve(app: Celery, options: WorkerOptions, name: str, registry: Registry) -> int:
    # One line for every HTTP request would bury what matters; keys would not be in it, but addresses are. And a bundle
    # is told once, when it ended.
    for chatty in ("httpx", "httpcore", "httpx2", "httpcore2", "openai", "google_genai", "celery.worker.strategy"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    worker = app.Worker(
        hostname=f"{name}@bothways",
        pool="threads",
        concurrency=options.slots,
        queues=[IDLE_QUEUE],
        consumer_cls=SteadyConsumer,
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


def _evaluator(engine: Engine, settings: Settings, options: WorkerOptions, worker: str, *, endpoint: str) -> Evaluator:
    contacts = ContactStore(engine, worker=worker)
    store = JobStore(
        engine, worker=worker, lease_margin_s=settings.lease_margin_s, autocommit=True, endpoint=endpoint or None
    )
    return Evaluator(
        store,
        lambda model, pool: open_provider(model, settings, pool),
        contacts=contacts,
        gate=_gate(settings, contacts),
        stopping=threading.Event(),
        slots=options.slots,
        patience=settings.patience,
    )


def _stock(settings: Settings) -> "Stock":
    """What the Ollama server beside this worker has. Its library is loaded where one is served."""
    from worker.hosts import Stock
    from worker.providers.ollama_host import OllamaHost

    return Stock(OllamaHost(settings.ollama_url, settings.machine), patience=settings.patience)


def _gpu_host(engine: Engine, stock: "Stock", evaluator: Evaluator, worker: str, settings: Settings) -> Chooser:
    from worker.hosts import GpuHost

    threading.Thread(target=stock.keep_looking, args=(evaluator.stopping,), daemon=True).start()
    contacts, patience = evaluator.access.contacts, settings.patience
    host = GpuHost(engine, stock, contacts, evaluator.holds, worker=worker, patience=patience)
    evaluator.serves = host.serves
    return host


def _gate(settings: Settings, contacts: ContactStore) -> Gate | None:
    """The gate of the pools that the pools file names, if there is one."""
    path = pools_file()
    if path is None:
        return None
    broker = Redis.from_url(
        settings.broker_url.get_secret_value(),
        decode_responses=True,
        socket_timeout=BROKER_TIMEOUT_S,
        socket_connect_timeout=BROKER_TIMEOUT_S,
    )
    return Gate(broker, read_pools(path), lambda pool, since: contacts.used(pool.name, since))


def _try_again(evaluator: Evaluator, providers: tuple[str, ...], endpoint: str, patience: float) -> None:
    """Look now and then whether what was stopped may be asked again."""
    while not evaluator.stopping.wait(patience * TRY_AGAIN_EVERY_S):
        try:
            evaluator.access.contacts.try_again(providers, endpoint, after_s=patience * TRIED_AGAIN_AFTER_S)
        except Exception as error:  # noqa: BLE001 - this thread lives as long as the worker
            log.warning("stops could not be looked at: %s", type(error).__name__)


def _leave_in_time(evaluator: Evaluator, registry: Registry, grace_s: float) -> None:
    """The end of the grace: what is still in hand goes back and the process leaves, whatever a call is waiting for."""
    time.sleep(max(0.0, grace_s - GIVE_BACK_RESERVE_S))
    log.warning("the grace of %.0f s is over: giving back what is in hand", grace_s)
    # Postgres may be what the rest waits for: after the reserve the process leaves all the same, and leases do it.
    threading.Timer(GIVE_BACK_RESERVE_S, os._exit, (0,)).start()
    evaluator.give_back_all()
    registry.leave()
    os._exit(0)

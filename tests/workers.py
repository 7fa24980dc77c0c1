"""A worker without Celery: its evaluator on a database, with providers of the test's own."""

import threading

from sqlalchemy import Engine

from contract.models import Model
from contract.pools import Pool
from worker.contact_store import ContactStore
from worker.evaluate import Evaluator
from worker.openings import Opener
from worker.pools import Gate
from worker.providers.base import Provider
from worker.store import JobStore


def evaluator_on(
    engine: Engine,
    provider: Provider | Opener,
    *,
    worker: str = "w",
    stopping: threading.Event | None = None,
    store: JobStore | None = None,
    gate: Gate | None = None,
) -> Evaluator:
    """A worker's evaluator; every model is served by `provider`, or by what that opens."""

    def open_it(model: Model, pool: Pool | None) -> Provider:
        return provider(model, pool) if callable(provider) else provider

    return Evaluator(
        store or JobStore(engine, worker=worker),
        open_it,
        contacts=ContactStore(engine, worker=worker),
        gate=gate,
        stopping=stopping or threading.Event(),
    )

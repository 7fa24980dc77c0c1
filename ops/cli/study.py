"""What `run` and `demo` share: check the models, enqueue, say what changed, follow to the end."""

import logging
import threading

from contract.database import postgres_errors
from contract.models import OpenAIModel
from ops.cli.connect import Connected
from ops.cli.follow import follow
from ops.cli.terminal import Exit, err
from ops.progress import read_progress
from producer.dispatch import Dispatcher
from producer.enqueue import Enqueued, enqueue
from producer.study_file import LoadedStudy
from worker.providers import open_provider
from worker.providers.base import MisconfiguredError, ProviderError


def enqueue_study(connected: Connected, loaded: LoadedStudy) -> None:
    """Refuse a model that its server does not offer, write the study's plan and say what is new."""
    for number, model in enumerate(loaded.study.models):
        if isinstance(model, OpenAIModel):
            _check_model(connected, loaded, number, model)
    with postgres_errors(connected.engine):
        done = enqueue(connected.engine, loaded)
    finished = read_progress(connected.engine, loaded.study.study).finished
    err.print(f"{_changes(loaded.study.study, done)}{f'; {finished:,} are done' if finished else ''}")


def follow_study(connected: Connected, study: str) -> Exit:
    """Follow to the end, dispatching as long as nobody else leads."""
    stopping = threading.Event()
    dispatcher = Dispatcher(connected.engine, connected.celery(), connected.broker())
    thread = threading.Thread(target=dispatcher.run, args=(stopping,), daemon=True)
    thread.start()
    # The dispatcher's words would break the view; what matters of them, the view says itself.
    logging.getLogger("producer").addHandler(logging.NullHandler())
    try:
        return follow(connected.engine, study)
    finally:
        stopping.set()
        thread.join(timeout=5)


def _check_model(connected: Connected, loaded: LoadedStudy, number: int, model: OpenAIModel) -> None:
    """Refuse a model that its server does not offer; a server that cannot be asked from here is only mentioned."""
    field = ("models", number, "model")
    if model.base_url is None and connected.settings.embedded_url is None:
        problem = "names no base_url and no embedded server runs here: add base_url, or start `bothways up`"
        raise loaded.refuse(field, problem)
    try:
        offered = open_provider(model, connected.settings).models() or []
    except MisconfiguredError:
        return  # the key lives with the workers, or the server lists nothing; the first call will tell
    except ProviderError as error:
        err.print(f"note: {model.name} could not be asked from here which models it serves ({error})")
        return
    if model.model not in offered:
        known = ", ".join(offered) or "none"
        raise loaded.refuse(field, f"the server offers no model {model.model!r}; it offers: {known}")


def _changes(study: str, done: Enqueued) -> str:
    counts = {
        "new": done.new,
        "as they were": done.known,
        "planned again": done.revived,
        "no longer planned (kept)": done.unplanned,
        "asked again because retries were raised": done.reopened,
    }
    told = ", ".join(f"{jobs:,} {what}" for what, jobs in counts.items() if jobs) or "none"
    return f"study {study}, revision {done.revision}: jobs {told}"

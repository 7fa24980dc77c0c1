"""What `run` and `demo` share: check the models, enqueue, say what changed, follow to the end."""

import logging
import threading

from contract.database import postgres_errors
from ops.cli.connect import Connected
from ops.cli.follow import follow
from ops.cli.model_check import check_models
from ops.cli.terminal import Exit, err
from ops.progress import read_progress
from producer.dispatch import Dispatcher
from producer.enqueue import Enqueued, enqueue
from producer.loaded_study import LoadedStudy


def enqueue_study(connected: Connected, loaded: LoadedStudy) -> None:
    """Name what is wrong with the models, write the study's plan and say what is new."""
    check_models(connected, loaded)
    with postgres_errors(connected.engine):
        done = enqueue(connected.engine, loaded)
    finished = read_progress(connected.engine, loaded.study.study).finished
    err.print(f"{_changes(loaded.study.study, done)}{f'; {finished:,} are done' if finished else ''}")


def follow_study(connected: Connected, study: str, *, wait_for_s: float | None = None) -> Exit:
    """Follow to the end, dispatching as long as nobody else leads; `wait_for_s` bounds the wait for a paused quota."""
    stopping = threading.Event()
    dispatcher = Dispatcher(connected.engine, connected.celery(), connected.broker())
    thread = threading.Thread(target=dispatcher.run, args=(stopping,), daemon=True)
    thread.start()
    # The dispatcher's words would break the view; what matters of them, the view says itself.
    logging.getLogger("producer").addHandler(logging.NullHandler())
    try:
        return follow(connected.engine, study, wait_for_s=wait_for_s)
    finally:
        stopping.set()
        thread.join(timeout=5)


def follow_until_left(connected: Connected, study: str, *, wait_for_s: float | None = None) -> Exit:
    """Follow to the end, or until Ctrl-C, and then say what that did and did not do."""
    try:
        return follow_study(connected, study, wait_for_s=wait_for_s)
    except KeyboardInterrupt:
        err.print(_no_longer_watching(connected, study))
        return Exit.INTERRUPTED


def _no_longer_watching(connected: Connected, study: str) -> str:
    """Workers go on as long as something dispatches to them."""
    if read_progress(connected.engine, study).workers == 0:
        return "no longer watching, and nobody is asking; what is done is kept, the same command goes on from here"
    return (
        f"no longer watching; workers may go on asking: bothways pause {study} stops that, "
        f"bothways status {study} --watch looks again"
    )


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

"""A study asked for real: dispatcher and one worker as processes, followed until every job is finished."""

from sqlalchemy import text

from ops.benchmarks.stand import Stand, await_that
from ops.benchmarks.synthetic import Shape, write_study
from producer.enqueue import enqueue
from producer.study_file import read_study

_UNFINISHED = text("SELECT EXISTS (SELECT FROM job WHERE finished_at IS NULL)")


def work_off(stand: Stand, shape: Shape, *, slots: int) -> None:
    """Enqueue a study on simulated models, have it asked with so many slots, and stop the processes again."""
    enqueue(stand.database, read_study(write_study(stand.folder / "study", shape)))
    dispatcher = stand.spawn("dispatcher", "ops.cli", "dispatch")
    worker = stand.spawn("worker", "ops.cli", "worker", "--provider", "simulated", "--slots", str(slots))
    await_that(lambda: not _unfinished(stand), while_run=(dispatcher, worker))
    worker.ask_to_stop()
    dispatcher.stop()
    worker.stop()


def _unfinished(stand: Stand) -> bool:
    with stand.database.connect() as connection:
        return bool(connection.execute(_UNFINISHED).scalar_one())

"""Runs benchmarks one after the other; what goes wrong in one is told in its row and stops none of the others."""

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from contract.errors import BothwaysError
from ops.benchmarks.figures import Measurement, NotMeasuredError, Row
from ops.benchmarks.options import Options

MODULES = {
    "enqueue": "enqueueing",
    "broker-memory": "broker_memory",
    "orchestration": "orchestration",
    "slots": "slots",
    "worker-memory": "worker_memory",
    "prefix-order": "prefix_order",
}
"""The benchmarks in the order of the table, and where each one's `measure` is."""

Measure = Callable[[Options], Measurement]


def run_all(names: Sequence[str], options: Options) -> Iterator[Row]:
    """A row for each benchmark, as soon as it is there."""
    for name in names:
        yield run_one(name, partial(_import_and_measure, name), options)


def run_one(name: str, measure: Measure, options: Options) -> Row:
    """The row of one benchmark, whatever becomes of it."""
    start = time.monotonic()

    def row(measurement: Measurement | None = None, reason: str | None = None, *, failed: bool = False) -> Row:
        seconds = time.monotonic() - start
        return Row(name=name, seconds=seconds, measurement=measurement, reason=reason, failed=failed)

    try:
        return row(measure(options))
    except NotMeasuredError as error:
        return row(reason=str(error))
    except BothwaysError as error:
        return row(reason=str(error), failed=True)
    except Exception as error:  # noqa: BLE001 - one row's failure must not lose the others
        return row(reason=f"{type(error).__name__}: {' '.join(str(error).split())[:500]}", failed=True)


def _import_and_measure(name: str, options: Options) -> Measurement:
    """One benchmark, imported only now: what is missing for it must not keep the others from running."""
    measure: Measure = importlib.import_module(f"ops.benchmarks.{MODULES[name]}").measure
    return measure(options)

"""Suspects are asked alone in their process, and hostile texts harm nobody."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Engine

from contract.completion import Completion
from contract.results import LOSSES_ALONE
from contract.storable import MAX_CHARACTERS
from tests.jobs import change, plan, rows, states
from tests.workers import evaluator_on
from worker.evaluate import Evaluator
from worker.providers.base import Description, Endpoint, Request
from worker.records import ClaimedJob
from worker.store import JobStore


class Watching:
    """A provider that notes who was asked beside whom: for each call, how many others were in flight at any time."""

    endpoint = Endpoint(provider="watching", model="watching", label=None)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_flight: dict[str, int] = {}
        self.most_beside: dict[str, int] = {}

    def complete(self, request: Request) -> Completion:
        call = str(request.call)
        with self._lock:
            self._in_flight[call] = 0
            beside = len(self._in_flight) - 1
            for other in self._in_flight:
                self._in_flight[other] = max(self._in_flight[other], beside)
        time.sleep(0.03)
        with self._lock:
            self.most_beside[call] = self._in_flight.pop(call)
        return Completion(text="A")

    def models(self) -> list[str] | None:
        return None

    def describe(self) -> Description:
        return Description()


def queued_bundles(engine: Engine, folder: Path, *, items: int, size: int) -> list[list[int]]:
    """The jobs of a study, all queued, in bundles."""
    plan(engine, folder, items=items, bundles={"size": size, "budget_s": 30})
    change(engine, "UPDATE job SET state = 'queued', lease_until = now() + interval '1 hour'")
    ids = [row["id"] for row in rows(engine, "SELECT id FROM job ORDER BY position")]
    return [ids[start : start + size] for start in range(0, len(ids), size)]


def evaluate_all(evaluator: Evaluator, bundles: Sequence[list[int]], *, slots: int) -> None:
    """Evaluate the bundles in so many threads."""
    with ThreadPoolExecutor(slots) as threads:
        for bundle in [threads.submit(evaluator.evaluate, ids) for ids in bundles]:
            bundle.result(60)


def test_a_suspect_is_asked_alone_though_all_slots_have_work(engine: Engine, tmp_path: Path) -> None:
    bundles = queued_bundles(engine, tmp_path, items=32, size=4)
    suspects = [bundles[3].pop(), bundles[9].pop()]
    change(engine, "UPDATE job SET losses = :losses WHERE id = ANY(:ids)", losses=LOSSES_ALONE, ids=suspects)
    provider = Watching()
    evaluator = evaluator_on(engine, provider, worker="w")

    evaluate_all(evaluator, [*bundles[:4], [suspects[0]], *bundles[4:], [suspects[1]]], slots=8)

    assert states(engine) == {"answered": 64}
    calls = {row["job"]: str(row["id"]) for row in rows(engine, "SELECT id, job FROM attempt")}
    assert [provider.most_beside[calls[suspect]] for suspect in suspects] == [0, 0]
    assert max(provider.most_beside.values()) > 2


def test_no_other_call_is_noted_while_a_suspect_is_asked(engine: Engine, tmp_path: Path) -> None:
    bundles = queued_bundles(engine, tmp_path, items=16, size=8)
    suspect = bundles[0].pop(0)
    change(engine, "UPDATE job SET losses = :losses WHERE id = :id", losses=LOSSES_ALONE, id=suspect)
    noted: list[list[int]] = []

    class Asked(Watching):
        def complete(self, request: Request) -> Completion:
            calling = [row["id"] for row in rows(engine, "SELECT id FROM job WHERE calling")]
            if suspect in calling:
                noted.append(calling)
            return super().complete(request)

    evaluator = evaluator_on(engine, Asked(), worker="w")

    evaluate_all(evaluator, [bundles[1], bundles[2], [suspect], bundles[3], bundles[0]], slots=5)

    assert noted == [[suspect]]


def test_jobs_that_could_not_be_given_back_keep_nobody_from_company(engine: Engine, tmp_path: Path) -> None:
    class Failing(JobStore):
        def give_back(self, jobs: Sequence[ClaimedJob]) -> None:  # noqa: ARG002
            raise RuntimeError("no")

    bundle = queued_bundles(engine, tmp_path, items=2, size=4)[0]
    stopping = threading.Event()

    class Stopping(Watching):
        def complete(self, request: Request) -> Completion:
            stopping.set()
            return super().complete(request)

    evaluator = evaluator_on(engine, Stopping(), store=Failing(engine, worker="w"), stopping=stopping)

    with pytest.raises(RuntimeError, match="no"):
        evaluator.evaluate(bundle)

    assert evaluator.company.enter(alone=True, until=time.monotonic())


HOSTILE = {
    "NUL": ("A\x00", "A\N{SYMBOL FOR NULL}"),
    "lone surrogates": ("A\ud800\udfff", "A\\ud800\\udfff"),
    "not a number": ("NaN", "NaN"),
    "1 MB": ("x" * 1_000_000, "x" * 1_000_000),
    "5 MB": ("x" * 5_000_000, "x" * MAX_CHARACTERS),
    "5 MB beyond ASCII": ("\N{ROCKET}" * 5_000_000, "\N{ROCKET}" * MAX_CHARACTERS),
}


@pytest.mark.parametrize(("said", "kept"), HOSTILE.values(), ids=HOSTILE)
def test_whatever_a_model_says_is_stored_and_its_neighbours_are_none_the_worse(
    engine: Engine, tmp_path: Path, said: str, kept: str
) -> None:
    class Hostile(Watching):
        def complete(self, request: Request) -> Completion:
            return Completion(text=said) if "number 1?" in request.prompt else Completion(text="A")

    (bundle,) = queued_bundles(engine, tmp_path, items=4, size=8)

    evaluated = evaluator_on(engine, Hostile(), worker="w").evaluate(bundle)

    found = rows(engine, "SELECT completion, completion_length, outcome FROM attempt ORDER BY completion <> 'A' DESC")
    length = max(len(said), len(kept))  # where it was cut, the length that it had
    assert [(row["completion"], row["completion_length"]) for row in found[:2]] == [(kept, length)] * 2
    assert [(row["completion"], row["outcome"]) for row in found[2:]] == [("A", "answered")] * 6
    assert evaluated in ("answered 8", "answered 2 invalid 2 answered 4", "answered 6 invalid 2")
    assert sum(states(engine).values()) == states(engine)["answered"] + states(engine)["invalid"] == 8

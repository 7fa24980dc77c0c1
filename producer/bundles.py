"""What travels together: bundles are cut by prompt prefix, and studies share a queue by their weights. All of it pure.

A server that keeps the prompt it saw last in each slot has the shared head of a bundle's prompts to fill only once,
because one client asks a bundle's jobs one after the other.
"""

import heapq
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from contract.results import LOSSES_ALONE


@dataclass(frozen=True, kw_only=True)
class DueJob:
    """A job that may be queued now. `prefix` is equal where prompts share their head; None where it is not known."""

    id: int
    model: str
    dataset: str
    prefix: int | None
    losses: int


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """The jobs of one message: one queue, study, model and dataset."""

    job_ids: tuple[int, ...]
    study: str
    model: str
    dataset: str


@dataclass(frozen=True, kw_only=True)
class Claimant:
    """A study with due jobs in a queue: its weight there, and how many of its jobs are queued or running already.

    `size` and `budget_s` are what its file says of bundles.
    """

    id: int
    name: str
    weight: int
    held: int
    size: int
    budget_s: float

    def bundle_size(self, pace_s: float | None) -> int:
        """How many jobs a bundle may have: no more than its time budget is likely to be enough for."""
        if not pace_s:
            return self.size
        return max(1, min(self.size, int(self.budget_s / pace_s)))


@dataclass(order=True)
class _Turn:
    served: float
    tie: float
    claimant: Claimant = field(compare=False)


def share(room: int, claimants: Sequence[Claimant], pace_s: float | None, draw: random.Random) -> dict[int, int]:
    """How many jobs each study (by id) may queue now, in whole bundles; together no more than `room`.

    Weighted round robin: the next bundle goes to the study with the fewest queued and running jobs for its weight,
    ties by lot. What a study holds already counts, so shares even out over rounds however small the room of each is.
    """
    turns = [_Turn(claimant.held / claimant.weight, draw.random(), claimant) for claimant in claimants]
    heapq.heapify(turns)
    given = {claimant.id: 0 for claimant in claimants}
    while turns and room > 0:
        turn = turns[0]
        size = turn.claimant.bundle_size(pace_s)
        if size > room and turn.claimant.held + given[turn.claimant.id] > 0:
            break
        given[turn.claimant.id] += size
        room -= size
        heapq.heapreplace(turns, _Turn(turn.served + size / turn.claimant.weight, draw.random(), turn.claimant))
    return given


def cut_bundles(jobs: Sequence[DueJob], study: str, *, size: int, slots: int, more: bool) -> list[Bundle]:
    """Cut `jobs`, which are in plan order, into bundles of at most `size`.

    Jobs of one prefix stay together as far as they fit; short prefixes fill a bundle together. Where there are too few
    jobs for full bundles in all `slots`, bundles end earlier, so that no slot is idle while another has a full one.
    `more`: the jobs go on after these; then the last bundle is left out, because a longer list might fill it.
    """
    enough = size if more else max(1, min(size, -(-len(jobs) // slots)))
    bundles: list[list[DueJob]] = []
    for suspect, group in groupby(jobs, key=_kind):
        if suspect is None:
            bundles += [[job] for job in group]
        else:
            bundles += _packed(list(group), size=size, enough=enough)
    if more and len(bundles) > 1:
        bundles.pop()
    return [_bundle(held, study) for held in bundles]


def _kind(job: DueJob) -> tuple[str, str] | None:
    """What a bundle has one of; None for a suspect."""
    return (job.model, job.dataset) if job.losses < LOSSES_ALONE else None


def _packed(jobs: list[DueJob], *, size: int, enough: int) -> Iterator[list[DueJob]]:
    held: list[DueJob] = []
    for _, same in groupby(jobs, key=lambda job: (job.prefix, job.id if job.prefix is None else None)):
        group = list(same)
        if held and len(held) + min(len(group), size) > size:
            yield held
            held = []
        held += group
        while len(held) > size:
            yield held[:size]
            held = held[size:]
        if len(held) >= enough:
            yield held
            held = []
    if held:
        yield held


def _bundle(jobs: list[DueJob], study: str) -> Bundle:
    first = jobs[0]
    return Bundle(job_ids=tuple(job.id for job in jobs), study=study, model=first.model, dataset=first.dataset)

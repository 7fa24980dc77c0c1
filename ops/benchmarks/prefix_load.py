"""Asks a model server through the worker's own provider: so many clients, each taking one unit of jobs at a time."""

import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from contract.completion import Completion
from contract.errors import StackError
from contract.formats import closed
from contract.settings import Settings
from ops.benchmarks.figures import middle_rate
from worker.providers import open_provider
from worker.providers.base import Provider, Request
from worker.records import ClaimedJob


@dataclass(frozen=True, kw_only=True)
class Answered:
    """One completion and when it was there, in seconds."""

    completion: Completion
    at: float


@dataclass(frozen=True, kw_only=True)
class Load:
    """What came back for one order of the jobs, and how many seconds it took from first request to last answer."""

    answers: tuple[Answered, ...]
    seconds: float

    @property
    def jobs_per_s(self) -> float:
        """Over the whole time, with its slow begin and end."""
        return len(self.answers) / self.seconds

    @property
    def middle_jobs_per_s(self) -> float:
        """Over the middle 80 % of the answers."""
        return middle_rate([answer.at for answer in self.answers])

    @property
    def prompt_a_job(self) -> float:
        """Mean prompt tokens."""
        return self._mean([_known(answer.completion.tokens_in) for answer in self.answers])

    @property
    def prefilled_a_job(self) -> float:
        """Mean prompt tokens that the server did not have in its cache."""
        completions = [answer.completion for answer in self.answers]
        return self._mean([_known(each.tokens_in) - _known(each.tokens_cached) for each in completions])

    @property
    def answer_a_job(self) -> float:
        """Mean tokens of the answers."""
        return self._mean([_known(answer.completion.tokens_out) for answer in self.answers])

    def _mean(self, counts: Sequence[int]) -> float:
        return sum(counts) / len(counts)


def ask_all(units: Sequence[Sequence[ClaimedJob]], settings: Settings, *, clients: int) -> Load:
    """Ask every job once; a client asks the jobs of its unit one after the other, and then takes the next unit."""
    provider = open_provider(units[0][0].rules.model, settings)
    provider.models()  # imports, connects
    with ThreadPoolExecutor(clients) as pool:
        start = time.monotonic()
        answers = tuple(answer for unit in pool.map(partial(_ask_unit, provider), units) for answer in unit)
        seconds = time.monotonic() - start
    return Load(answers=answers, seconds=seconds)


def _ask_unit(provider: Provider, jobs: Sequence[ClaimedJob]) -> list[Answered]:
    return [_ask(provider, job) for job in jobs]


def _ask(provider: Provider, job: ClaimedJob) -> Answered:
    request = Request(
        call=uuid.uuid4(),
        number=1,
        prompt=closed.render(job.item, job.variant, job.rules.prompt),
        sampling=job.rules.format.sampling,
        seed=job.seed(0),
        timeout_s=job.rules.model.timeout_s,
    )
    return Answered(completion=provider.complete(request), at=time.monotonic())


def _known(count: int | None) -> int:
    if count is None:
        raise StackError("the model server does not tell its tokens")
    return count

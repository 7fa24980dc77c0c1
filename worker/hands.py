"""What is in the hands of one process, so that it can be given back at the end of the grace."""

from collections.abc import Sequence

from worker.records import ClaimedJob


class Hands:
    """The jobs that are held, by id; one that was lost and claimed again by this process is held by the newer claim."""

    def __init__(self) -> None:
        self._jobs: dict[int, ClaimedJob] = {}

    @property
    def jobs(self) -> list[ClaimedJob]:
        """All of them at this moment."""
        return list(self._jobs.values())

    def take(self, jobs: Sequence[ClaimedJob]) -> None:
        """Remember that `jobs` are held."""
        self._jobs.update({job.id: job for job in jobs})

    def drop(self, jobs: Sequence[ClaimedJob]) -> None:
        """Forget them: finished or given back."""
        for job in jobs:
            if self._jobs.get(job.id) is job:
                self._jobs.pop(job.id, None)

    def hold(self, queue: str) -> bool:
        """Whether jobs of `queue` are among them."""
        return any(job.queue == queue for job in self.jobs)

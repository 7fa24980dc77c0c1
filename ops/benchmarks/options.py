"""How large a run of benchmarks is."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Options:
    """The sizes of everything that is measured; smaller ones end sooner and tell less."""

    jobs: int = 1_000_000
    """Of the study that is enqueued and waits."""

    messages: int = 20_000
    """Of the baseline: one a job."""

    orchestrated_jobs: int = 20_000
    """Asked by one worker of a model without latency, and no-op tasks of the baseline."""

    slots_jobs: int = 12_000
    """Asked by one worker of a model that takes 200 ms."""

    remembered_jobs: int = 100_000
    """Asked by one worker whose memory is watched."""

    prefix_jobs: int = 444
    """Asked of a real model server, in each order."""

    squad_it: Path | None = None

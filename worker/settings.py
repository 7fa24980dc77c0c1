"""What one worker process is told beside the common settings."""

from dataclasses import dataclass

DEFAULT_PROVIDERS = ("openai", "simulated")


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """How many bundles at once, which providers, and how long to finish after SIGTERM.

    `grace_s` bounds the time from SIGTERM to the end of the process; what is not finished by then is given back.
    """

    slots: int = 4
    providers: tuple[str, ...] = DEFAULT_PROVIDERS
    name: str = "worker"
    grace_s: float = 30.0

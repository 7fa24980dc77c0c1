"""What one worker process is told beside the common settings."""

from dataclasses import dataclass

GPU_HOST = "ollama"
API_PROVIDERS = ("openai", "gemini", "simulated")
"""What a worker serves if nothing else is said. That of a GPU host serves nothing else: models take their turns there,
and would hold up everything beside them."""


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """How many bundles at once, which providers, and how long to finish after SIGTERM.

    `grace_s` bounds the time from SIGTERM to the end of the process; what is not finished by then is given back.
    """

    slots: int = 4
    providers: tuple[str, ...] = API_PROVIDERS
    name: str = "worker"
    grace_s: float = 30.0

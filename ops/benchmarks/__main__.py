"""`python -m ops.benchmarks`: runs the benchmarks that are named, or all, prints one table, writes JSON if asked to.

Ends with 0 when it ran, whatever was reached; a benchmark that failed says so in its row.
"""

import argparse
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ops.benchmarks.figures import Row
from ops.benchmarks.machine import machine_facts
from ops.benchmarks.options import Options
from ops.benchmarks.run import MODULES, run_all
from ops.benchmarks.table import as_json, render
from ops.cli.terminal import Exit, err, out

SQUAD_IT = "BOTHWAYS_SQUAD_IT"


def main() -> int:
    """Read the command line, measure, tell. What was measured before a Ctrl-C is told too."""
    given = _parser().parse_args()
    options = _options(given, os.environ)
    _leave_our_settings_out()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that what was started is stopped
    machine, rows, code = machine_facts(), list[Row](), Exit.DONE
    try:
        for row in run_all(_in_order(given.names), options):
            rows.append(row)
            err.print(f"{row.name}: {row.seconds:.0f} s{'' if row.reason is None else f', {row.reason}'}")
            _write(given.json, rows, machine)
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    if rows:
        out.print(render(rows))
    return int(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ops.benchmarks", description="Measures Bothways against baselines on this machine."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*MODULES, []], help=f"of: {', '.join(MODULES)}")
    parser.add_argument("--jobs", type=_positive, help="jobs of the study that is enqueued and waits")
    parser.add_argument("--json", type=Path, help="write every figure to this file too")
    parser.add_argument("--squad-it", type=Path, help=f"SQuAD_it-test.json(.gz) for prefix-order, or set {SQUAD_IT}")
    return parser


def _positive(written: str) -> int:
    number = int(written.replace("_", "").replace(",", ""))
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def _options(given: argparse.Namespace, environment: Mapping[str, str]) -> Options:
    named = environment.get(SQUAD_IT)
    options = Options(squad_it=given.squad_it or (Path(named) if named else None))
    return options if given.jobs is None else replace(options, jobs=given.jobs)


def _in_order(names: Sequence[str]) -> list[str]:
    return [name for name in MODULES if not names or name in names]


def _leave_our_settings_out() -> None:
    """Settings of a stack in use must reach neither the stands nor the processes on them."""
    for name in [name for name in os.environ if name.startswith("BOTHWAYS_")]:
        del os.environ[name]


def _write(path: Path | None, rows: Sequence[Row], machine: dict[str, Any]) -> None:
    """After every row, so that a run that is broken off leaves what it has."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(as_json(rows, machine), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

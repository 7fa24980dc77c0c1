"""How a run of benchmarks is told: one table for people, one JSON document with every figure. Pure."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ops.benchmarks.figures import Line, Row

_HEAD = ("benchmark", "what", "measured", "baseline", "ratio", "to reach", "")


def render(rows: Sequence[Row]) -> str:
    """The table, one line a figure; what was not measured says why."""
    cells = [_HEAD, *(line for row in rows for line in _cells(row))]
    widths = [max(len(line[column]) for line in cells if len(line) == len(_HEAD)) for column in range(len(_HEAD))]
    return "\n".join(_padded(line, widths) for line in cells)


def as_json(rows: Sequence[Row], machine: dict[str, Any]) -> dict[str, Any]:
    """The whole run: the machine, and each benchmark with its lines, verdicts and raw figures."""
    return {"machine": machine, "rows": [_row_as_json(row) for row in rows]}


def verdict(line: Line) -> str:
    """In words; nothing for a line without a goal."""
    return {True: "reached", False: "not reached", None: ""}[line.reached]


def goal_text(line: Line) -> str:
    """What a line has to reach, in words."""
    if line.goal is None:
        return "-"
    side, unit = "at least" if line.goal.at_least else "at most", "x" if line.goal.of_ratio else line.unit
    return f"{side} {_figure(line.goal.bound, unit)}"


def _cells(row: Row) -> list[tuple[str, ...]]:
    if row.measurement is None:
        return [(row.name, f"{'failed' if row.failed else 'not measured'}: {row.reason}")]
    return [
        (
            row.name,
            line.what,
            _figure(line.measured, line.unit),
            f"{_figure(line.baseline, line.unit)} ({line.against})",
            "-" if line.ratio is None else _figure(line.ratio, "x"),
            goal_text(line),
            verdict(line),
        )
        for line in row.measurement.lines
    ]


def _padded(line: tuple[str, ...], widths: list[int]) -> str:
    if len(line) < len(widths):
        return f"{line[0]:<{widths[0]}}  {line[1]}"
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()


def _figure(value: float, unit: str) -> str:
    """Three digits that count, at least; `x` and `%` stand close."""
    if unit == "%":
        return f"{value:.1f}%"
    digits = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}{'x' if unit == 'x' else f' {unit}'}"


def _row_as_json(row: Row) -> dict[str, Any]:
    told: dict[str, Any] = {"name": row.name, "seconds": round(row.seconds, 1)}
    if row.measurement is None:
        return told | {"status": "failed" if row.failed else "not measured", "reason": row.reason}
    lines = [
        asdict(line) | {"ratio": line.ratio, "to_reach": goal_text(line), "verdict": verdict(line)}
        for line in row.measurement.lines
    ]
    return told | {"status": "measured", "lines": lines, "raw": row.measurement.raw}

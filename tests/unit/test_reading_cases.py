"""The reading "strict" on completions of every kind, as people read them: `closed_answers.yaml` beside this file."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from contract.reading import read_letter


@dataclass(frozen=True, kw_only=True)
class Case:
    """A completion as it was asked for, and how a person reads it: a letter, a reason, or "invalid" for any reason."""

    kind: str
    completion: str
    expected: str
    letters: tuple[str, ...]
    choices: tuple[str, ...] | None
    language: str | None
    cut_off: bool


def _cases() -> list[Case]:
    text = (Path(__file__).parent / "closed_answers.yaml").read_text(encoding="utf-8")
    return [
        Case(
            kind=block["kind"],
            completion=completion,
            expected=expected,
            letters=tuple(block.get("letters", "AB")),
            choices=tuple(block["choices"]) if "choices" in block else None,
            language=block.get("language"),
            cut_off=block.get("cut_off", False),
        )
        for block in yaml.safe_load(text)
        for completion, expected in block["cases"]
    ]


CASES = _cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}: {case.completion!a:.60}")
def test_completions_are_read_as_people_read_them(case: Case) -> None:
    reading = read_letter(
        case.completion, letters=case.letters, choices=case.choices, cut_off=case.cut_off, language=case.language
    )

    if case.expected == "invalid":
        assert (reading.letter, reading.reason is None) == (None, False)
    elif case.expected.isupper():
        assert (reading.letter, reading.reason) == (case.expected, None)
    else:
        assert (reading.letter, reading.reason) == (None, case.expected)


def test_no_completion_stands_there_twice_for_the_same_question() -> None:
    asked = [(case.completion, case.letters, case.choices, case.cut_off) for case in CASES]
    assert len(set(asked)) == len(asked)

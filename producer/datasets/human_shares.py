"""Human shares: what part of the people asked gave each answer, from a table with key, option and weighted_share.

A human answer whose text is no option of its question is refused, and its share is never lost: the study file says
which option it means (`human_options`), or that a question is to have no shares (`without_human`).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from contract.study import Dataset
from producer.datasets.faults import DatasetFieldError
from producer.datasets.layouts import read_rows
from producer.datasets.rows import Row, printable
from producer.datasets.written import share

TOLERANCE = 0.02
"""How far from 1 the shares of one question may sum up: they are rounded where they are published."""

_SHARE = "weighted_share"


@dataclass(frozen=True, kw_only=True)
class HumanShares:
    """The rows of a table by the key of their question; rows of questions that are not asked are passed over."""

    path: Path
    rows: Mapping[str, Sequence[Row]]
    dataset: Dataset

    @classmethod
    def read(cls, path: Path, dataset: Dataset) -> "HumanShares":
        """The table in `path`, with what `dataset` says of it."""
        rows: dict[str, list[Row]] = defaultdict(list)
        for row in read_rows(path):
            rows[row.text("key")].append(row)
        return cls(path=path, rows=rows, dataset=dataset)

    def of(self, asked: Row, key: str, options: Sequence[str]) -> tuple[float, ...]:
        """The share of each option of the question in `asked`; one that no row names has nothing left for it."""
        if key not in self.rows:
            problem = f"{self.path} has no shares of {printable(key)}; add them, or let without_human name the key"
            raise asked.refuse("key", problem)
        shares: dict[str, float] = {}
        for row in self.rows[key]:
            option = self._option(row, key, options)
            if option in shares:
                raise row.refuse("option", f"a second share of {option!r:.80} in {printable(key)}; keep one")
            shares[option] = share(row, _SHARE, row.values.get(_SHARE))
        if abs(sum(shares.values()) - 1) > TOLERANCE:
            summed = f"the shares of {printable(key)} sum up to {sum(shares.values()):.3f}"
            raise self.rows[key][0].refuse(_SHARE, f"{summed}; they must be within {TOLERANCE} of 1")
        return tuple(shares.get(option, 0.0) for option in options)

    def check_all_used(self, keys: Collection[str]) -> None:
        """Refuse what the study file says of a key that the data lack, and of an answer that nobody gave."""
        for number, key in enumerate(self.dataset.without_human):
            if key not in keys:
                raise DatasetFieldError(("without_human", number), f"there is no question {key!r:.80}; take it out")
        for key, meant in (self.dataset.human_options or {}).items():
            if key not in keys or key in self.dataset.without_human:
                raise DatasetFieldError(("human_options", key), "no question with this key gets shares; take it out")
            given = [row.values.get("option") for row in self.rows.get(key, ())]
            for text in meant:
                if text not in given:
                    raise DatasetFieldError(("human_options", key), f"{self.path} has no answer {text!r:.80}; mend it")

    def _option(self, row: Row, key: str, options: Sequence[str]) -> str:
        """The option that the answer in `row` means."""
        text = row.text("option")
        option = (self.dataset.human_options or {}).get(key, {}).get(text, text)
        if option in options:
            return option
        shown = printable(key)
        if option != text:
            raise row.refuse("option", f"human_options says {option!r:.160}, and that is no option of {shown} either")
        problem = f"{text!r:.160} is no option of {shown}; add human_options: {{{shown}: {{TEXT: OPTION}}}}"
        raise row.refuse("option", f"{problem} to the dataset, or the key to without_human")

"""The ids of the items that are wanted: the column example_id (or id, or key) of a table, or one id a line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from contract.errors import InputError
from contract.items import Item
from producer.datasets.files import PACKED, read_lines
from producer.datasets.layouts import read_rows

_TABLES = (".csv", ".tsv")
_COLUMNS = ("example_id", "id", "key")


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """An id and where it stands: in a row of a table, or in a line."""

    id: str
    row: int | None = None
    line: int | None = None
    field: str | None = None

    def refuse(self, path: Path, problem: str) -> InputError:
        """The error that says what is wrong with this id."""
        return InputError(path, problem, row=self.row, line=self.line, field=self.field)


@dataclass(frozen=True, kw_only=True)
class Subset:
    """The ids of a file of them; no id stands twice."""

    path: Path
    wanted: Mapping[str, _Wanted]

    @classmethod
    def read(cls, path: Path) -> "Subset":
        """The ids in `path`."""
        wanted: dict[str, _Wanted] = {}
        for one in _ids(path):
            if one.id in wanted:
                raise one.refuse(path, f"{one.id!r:.80} stands twice; keep one")
            wanted[one.id] = one
        if not wanted:
            raise InputError(path, "there is no id in the file; write one a line")
        return cls(path=path, wanted=wanted)

    def of(self, items: Sequence[Item], data: Path) -> list[Item]:
        """The items that are wanted, in the order of the data file; an id that stands for none of them is refused."""
        known = {item.source_id for item in items}
        for one in self.wanted.values():
            if one.id not in known:
                problem = f"{one.id!r:.80} is the id of no item of {data}; take it out, or mend it"
                raise one.refuse(self.path, problem)
        return [item for item in items if item.source_id in self.wanted]


def _ids(path: Path) -> Iterator[_Wanted]:
    name = path.with_suffix("") if path.suffix.lower() in PACKED else path
    if name.suffix.lower() not in _TABLES:
        for number, text in enumerate(read_lines(path), start=1):
            if text.strip():
                yield _Wanted(id=text.strip(), line=number)
        return
    for row in read_rows(path):
        column = next((column for column in _COLUMNS if column in row.values), _COLUMNS[0])
        yield _Wanted(id=row.text(column).strip(), row=row.number, field=column)

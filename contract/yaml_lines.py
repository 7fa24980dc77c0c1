"""A file that a person wrote: its text, and its YAML as plain values that know on which line each field stands."""

from pathlib import Path
from typing import Any

import yaml

from contract.errors import InputError
from contract.storable import is_storable

FieldPath = tuple[str | int, ...]

STUDY_FILE = "a study file begins with `study: NAME`"


class YamlDocument:
    """One YAML document as plain values; `line_of` tells where a field was written.

    `wanted` says to whoever gives an empty file what it should hold. Raises InputError.
    """

    def __init__(self, path: Path, text: str, *, wanted: str = STUDY_FILE) -> None:
        self._path = path
        self._lines: dict[FieldPath, int | None] = {}
        self._inside: list[yaml.Node] = []
        try:
            loader = yaml.SafeLoader(text)
            node = loader.get_single_node()
            if node is None:
                raise InputError(path, f"the file is empty; {wanted}")
            self.values: Any = self._plain(loader, node, ())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = None if mark is None else mark.line + 1
            raise InputError(path, f"not valid YAML: {error.problem or error.context}", line=line) from None
        except yaml.YAMLError as error:
            raise InputError(path, f"not valid YAML: {' '.join(str(error).split())}") from None
        except RecursionError:
            raise InputError(path, "nested too deeply") from None

    def line_of(self, field: FieldPath) -> int | None:
        """The line of `field`, or of the nearest field around it that stands in the file."""
        while field and field not in self._lines:
            field = field[:-1]
        return self._lines.get(field)

    def put(self, field: str, value: object) -> None:
        """Set a field at the top to what the file does not say; it stands on no line."""
        self.values[field] = value
        self._lines = {place: line for place, line in self._lines.items() if place[:1] != (field,)} | {(field,): None}

    def _plain(self, loader: yaml.SafeLoader, node: yaml.Node, place: FieldPath) -> Any:  # noqa: ANN401 - any YAML value
        self._lines.setdefault(place, node.start_mark.line + 1)
        if not isinstance(node, yaml.CollectionNode):
            return self._scalar(loader, node, place)
        if node in self._inside:
            problem = "an alias that holds itself has no end"
            raise InputError(self._path, problem, line=node.start_mark.line + 1, field=print_path(place))
        self._inside.append(node)
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(loader, node, place)
            return [self._plain(loader, child, (*place, number)) for number, child in enumerate(node.value)]
        finally:
            self._inside.pop()

    def _scalar(self, loader: yaml.SafeLoader, node: yaml.Node, place: FieldPath) -> Any:  # noqa: ANN401
        line, field = node.start_mark.line + 1, print_path(place) or None
        try:
            value = loader.construct_object(node)
        except ValueError as error:
            raise InputError(self._path, f"looks like a value and is none: {error}", line=line, field=field) from None
        if isinstance(value, str) and not is_storable(value):
            problem = "holds a NUL character or half a surrogate pair, which no database can store"
            raise InputError(self._path, problem, line=line, field=field)
        return value

    def _mapping(self, loader: yaml.SafeLoader, node: yaml.MappingNode, place: FieldPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = loader.construct_object(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str):
                raise InputError(self._path, 'a name before a colon must be text; quote it, as in "1"', line=line)
            if key in values:
                raise InputError(self._path, "stands twice; keep one", line=line, field=print_path((*place, key)))
            self._lines[*place, key] = line
            values[key] = self._plain(loader, value_node, (*place, key))
        return values


def print_path(field: FieldPath) -> str:
    """A field's path as people write it: models[0].name."""
    printed = ""
    for part in field:
        printed += f"[{part}]" if isinstance(part, int) else f".{part}" if printed else part
    return printed


def read_text(path: Path) -> str:
    """The text of a file that a person wrote: UTF-8, with or without a byte order mark."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(path, "there is no such file") from None
    except UnicodeDecodeError as error:
        raise InputError(path, f"not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from None

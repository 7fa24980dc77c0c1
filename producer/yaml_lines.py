"""YAML with its line numbers: the plain values of a file, and on which line each field stands."""

from pathlib import Path
from typing import Any

import yaml

from contract.errors import InputError

FieldPath = tuple[str | int, ...]


class YamlDocument:
    """One YAML document as plain values; `line_of` tells where a field was written."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines: dict[FieldPath, int] = {}
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise InputError(path, "the file is empty; a study file begins with `study: NAME`")
            self.values: Any = self._plain(loader, node, ())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = None if mark is None else mark.line + 1
            raise InputError(path, f"not valid YAML: {error.problem or error.context}", line=line) from None
        except yaml.YAMLError as error:
            raise InputError(path, f"not valid YAML: {' '.join(str(error).split())}") from None
        finally:
            loader.dispose()

    def line_of(self, field: FieldPath) -> int | None:
        """The line of `field`, or of the nearest field around it that stands in the file."""
        while field and field not in self._lines:
            field = field[:-1]
        return self._lines.get(field)

    def _plain(self, loader: yaml.SafeLoader, node: yaml.Node, place: FieldPath) -> Any:  # noqa: ANN401 - any YAML value
        self._lines.setdefault(place, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(loader, node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(loader, child, (*place, number)) for number, child in enumerate(node.value)]
        return loader.construct_object(node)

    def _mapping(self, loader: yaml.SafeLoader, node: yaml.MappingNode, place: FieldPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = loader.construct_object(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str):
                raise InputError(self._path, "a field name must be plain text", line=line)
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

"""Answers in JSON, whole or broken: the fields whose names say that they hold the answer."""

import json
import re
from functools import cached_property

from contract.reading.lexicon import Lexicon

_OBJECT = re.compile(r"\{[^{}]*\}")


class Fields:
    """Finds answer fields by the words of one lexicon."""

    def __init__(self, lexicon: Lexicon) -> None:
        """The fields named in the words of `lexicon`."""
        self._words = lexicon.words

    @cached_property
    def _pair(self) -> re.Pattern[str]:
        noun = self._words("replies", "labels")
        right = rf"{self._words('right')}|final|finale|selected|chosen|scelta|my|your"
        noun = rf"{noun}|selection|result|verdict|label|prediction|output"
        key = rf"(?:(?:{right})[_ ]?)?(?:{noun})(?:[_ ](?:{right}|{noun}|id|key))?"
        value = r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|\[([^\[\]]*)\]"
        return re.compile(rf"(?<!\\)[\"'](?i:{key})[\"']\s*:\s*(?:{value})")

    def values(self, text: str) -> list[str]:
        """The texts in the answer fields of `text`, in their order; a list is one text."""
        return [_unescaped(pair[1]) if pair[1] is not None else _bare(pair) for pair in self._pair.finditer(text)]

    def is_object(self, text: str) -> bool:
        """Whether `text` is an object, or a list of them, or was to become one when it was cut off."""
        opened = text.startswith(("{", "[{", "[\n{", "[ {")) and re.search(r"[\"']\s*:", text[:10_000]) is not None
        if not opened or "}" not in text:
            return opened
        return text.endswith(("}", "]")) and re.search(r"\}\s*[^\s{},\]]", text) is None

    def objects_in(self, text: str) -> re.Pattern[str] | None:
        """The pattern of the objects that stand in prose; None where no answer field is in `text`."""
        return _OBJECT if self._pair.search(text) else None


def _bare(pair: re.Match[str]) -> str:
    return pair[2] if pair[2] is not None else re.sub(r"[\"']", "", pair[3])


def _unescaped(value: str) -> str:
    try:
        return str(json.loads(f'"{value}"', strict=False))
    except ValueError:
        return value

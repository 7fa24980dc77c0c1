"""Prompts: the instruments, one text file to each name and language, read as they are printed.

A file `NAME.LANGUAGE.txt` begins with header lines ("# ...": source and what it leaves open), then a line `---`, then
the body with its placeholders in braces. Only the body is prompt: a header can change without changing any digest.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from contract.items import canonical_digest

ANY_LANGUAGE = "*"
"""The language of a body that serves every item: a prompt file of one's own names no language."""

_SUFFIX = ".txt"
_HEADER = "#"
_DIVIDER = "---"
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, kw_only=True)
class PromptSet:
    """One instrument in the languages it exists in: `bodies` maps a language to the body with its placeholders."""

    name: str
    bodies: Mapping[str, str]

    def body(self, language: str | None) -> str:
        """The body for an item of `language`; a set in one language also serves items that name none, one in any all.

        ValueError says which languages there are when this one is missing, or when the item had to name one.
        """
        if ANY_LANGUAGE in self.bodies:
            return self.bodies[ANY_LANGUAGE]
        if language is None and len(self.bodies) == 1:
            return next(iter(self.bodies.values()))
        if language is None or language not in self.bodies:
            wanted = "an item without language" if language is None else f'language "{language}"'
            raise ValueError(f'prompt "{self.name}" has no body for {wanted}; it has {", ".join(sorted(self.bodies))}')
        return self.bodies[language]

    @property
    def digest(self) -> str:
        """What the bodies say, as one digest; headers and the name are not covered."""
        return canonical_digest(dict(self.bodies))

    @property
    def placeholders(self) -> frozenset[str]:
        """The names that a caller has to fill, over all languages."""
        return frozenset(name for body in self.bodies.values() for name in _PLACEHOLDER.findall(body))


def available_prompts() -> tuple[str, ...]:
    """The names that `load_prompt` knows, sorted."""
    return tuple(sorted({name for name, _ in _texts()}))


def load_prompt(name: str) -> PromptSet:
    """The prompt set of this name; a ValueError that lists the known names when no file has it."""
    bodies = {language: text for (known, language), text in _texts().items() if known == name}
    if not bodies:
        raise ValueError(f'no prompt "{name}"; known: {", ".join(available_prompts())}')
    return PromptSet(name=name, bodies={language: body_of(bodies[language]) for language in sorted(bodies)})


def body_of(text: str) -> str:
    """The body of a prompt file, without the newline that ends the file.

    ValueError when the divider is missing or a line above it is no header: half a header must never reach a model.
    """
    lines = text.split("\n")
    if _DIVIDER not in lines:
        raise ValueError(f'a prompt file needs a line "{_DIVIDER}" between header and body')
    divider = lines.index(_DIVIDER)
    if not all(line.startswith(_HEADER) for line in lines[:divider]):
        raise ValueError(f'every line above "{_DIVIDER}" begins with "{_HEADER}"')
    return "\n".join(lines[divider + 1 :]).removesuffix("\n")


def fill(body: str, **values: str) -> str:
    """The body with its placeholders replaced, in one pass: braces inside a value stay as they are.

    Values that the body has no placeholder for are left out; a placeholder without a value is a ValueError.
    """
    missing = sorted(set(_PLACEHOLDER.findall(body)) - values.keys())
    if missing:
        raise ValueError(f"no value for {', '.join(missing)}")
    return _PLACEHOLDER.sub(lambda match: values[match.group(1)], body)


def _texts() -> dict[tuple[str, str], str]:
    found = {}
    for file in files(__name__).iterdir():
        if file.name.endswith(_SUFFIX):
            name, _, language = file.name.removesuffix(_SUFFIX).rpartition(".")
            found[name, language] = file.read_text(encoding="utf-8")
    return found

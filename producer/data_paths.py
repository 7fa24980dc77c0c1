"""Variables in a study file, filled from the environment, and where a data file is."""

import re
from collections.abc import Mapping
from pathlib import Path

_VARIABLE = re.compile(r"\$\{([^{}]*)(\}?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def locate(written: str, folder: Path, environment: Mapping[str, str]) -> Path:
    """The path that `written` means: beside the study file, which stands in `folder`.

    What begins with a variable is meant as a person means a path on the command line: from where they are. KeyError
    names a variable that is not set or empty; ValueError says how a variable is written.
    """
    path = filled(written, environment)
    return Path(path) if _VARIABLE.match(written) else folder / path


def filled(written: str, environment: Mapping[str, str]) -> str:
    """`written` with each ${NAME} replaced; KeyError and ValueError as for `locate`."""
    return _VARIABLE.sub(lambda match: _value(match, environment), written)


def variables_in(written: str) -> list[str]:
    """The names of the variables in `written`."""
    return [match[1] for match in _VARIABLE.finditer(written)]


def unusable(path: Path) -> str | None:
    """Why `path` is no file that can be opened, None if it may be one."""
    try:
        if path.is_file():
            return None
        return f"{path} is a folder, not a file" if path.is_dir() else f"there is no file {path}"
    except OSError as error:
        return f"{str(path)[:200]} cannot be read: {error.strerror}"


def _value(match: re.Match[str], environment: Mapping[str, str]) -> str:
    name, end = match.groups()
    if not end or not _NAME.fullmatch(name):
        raise ValueError(f"{match.group()!r} is no variable; write ${{NAME}}, with letters, digits and _ in its name")
    value = environment.get(name)
    if not value:
        raise KeyError(name)
    return value

"""Files that hold a secret."""

import os
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read; a reader sees the old text or the new one, never a part."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)  # a draft left by a crash could have another mode
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)

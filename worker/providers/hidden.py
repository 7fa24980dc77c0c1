"""Keeping keys and prompts out of what is told about a call."""

import json

_HIDDEN = "[...]"


def without(hidden: tuple[str, ...], text: str) -> str:
    """`text` without the texts that must not be shown, as they are and as JSON writes them, escaped or not."""
    for secret in filter(None, hidden):
        for written in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
            text = text.replace(written, _HIDDEN)
    return text

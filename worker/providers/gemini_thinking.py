"""What a Gemini model is told about thinking: the older ones take a budget of tokens, the newer ones a level.

Either is an error for the other kind, and so is a level that a model does not know. What a study asks for becomes

    study     gemini-2.5-flash   gemini-2.5-pro   others
    off                      0              128   MINIMAL, or LOW where a model takes nothing less
    minimal                512              512   MINIMAL, or LOW where a model takes nothing less
    low                  1,024            1,024   LOW
    medium               4,096            4,096   MEDIUM
    high                16,384           16,384   HIGH
"""

import re
from typing import Literal

from google.genai import types

Thinking = Literal["off", "minimal", "low", "medium", "high"]

_TAKES_BUDGET = re.compile(r"gemini-2\.5-")
_LEAST_OF_PRO = 128
_BUDGETS: dict[Thinking, int] = {"off": 0, "minimal": 512, "low": 1024, "medium": 4096, "high": 16384}
_LEVELS: dict[Thinking, types.ThinkingLevel] = {
    "off": types.ThinkingLevel.MINIMAL,
    "minimal": types.ThinkingLevel.MINIMAL,
    "low": types.ThinkingLevel.LOW,
    "medium": types.ThinkingLevel.MEDIUM,
    "high": types.ThinkingLevel.HIGH,
}
_FLASH = re.compile(r"gemini-(\d+)(?:\.(\d+))?-flash")
_FIRST_FLASH_WITHOUT_MINIMAL = (3, 7)


def thinking_config(model: str, thinking: Thinking) -> types.ThinkingConfig:
    """A budget or a level for `model`, never both; a budget of 0 is the only way in which thinking is really off."""
    name = model.removeprefix("models/")
    if _TAKES_BUDGET.match(name):
        least = _LEAST_OF_PRO if name.startswith("gemini-2.5-pro") else 0
        return types.ThinkingConfig(thinking_budget=max(least, _BUDGETS[thinking]))
    level = _LEVELS[thinking]
    if level is types.ThinkingLevel.MINIMAL and not _takes_minimal(name):
        level = types.ThinkingLevel.LOW
    return types.ThinkingConfig(thinking_level=level)


def _takes_minimal(name: str) -> bool:
    """Whether the level MINIMAL is none that the model answers with an error, as far as its name tells."""
    if "flash-lite" in name:
        return True
    if name == "gemini-flash-latest" or (name.startswith("gemini-") and "-pro" in name):
        return False
    flash = _FLASH.match(name)
    return flash is None or (int(flash[1]), int(flash[2] or 0)) < _FIRST_FLASH_WITHOUT_MINIMAL

"""What each family of Gemini models is told about thinking."""

from typing import get_args

import pytest
from google.genai import types

from worker.providers.gemini_thinking import Thinking, thinking_config

MODELS = [
    "gemini-2.5-flash",
    "gemini-2.5-flash-lite",
    "gemini-2.5-pro",
    "models/gemini-2.5-pro-preview-06-05",
    "gemini-3-flash-preview",
    "gemini-3.1-flash-lite",
    "gemini-3.1-pro-preview",
    "gemini-3.8-flash",
    "gemini-flash-latest",
    "gemma-4-31b-it",
]


@pytest.mark.parametrize(
    ("model", "budgets"),
    [
        ("gemini-2.5-flash", [0, 512, 1024, 4096, 16384]),
        ("models/gemini-2.5-flash", [0, 512, 1024, 4096, 16384]),
        ("gemini-2.5-flash-lite", [0, 512, 1024, 4096, 16384]),
        ("gemini-2.5-pro", [128, 512, 1024, 4096, 16384]),
    ],
)
def test_the_older_models_take_a_budget_that_only_pro_cannot_have_at_zero(model: str, budgets: list[int]) -> None:
    configs = [thinking_config(model, thinking) for thinking in get_args(Thinking)]

    assert [config.thinking_budget for config in configs] == budgets


@pytest.mark.parametrize(
    ("model", "least"),
    [
        ("gemini-3-flash-preview", "MINIMAL"),
        ("gemini-3.5-flash", "MINIMAL"),
        ("gemini-3.6-flash", "MINIMAL"),
        ("gemini-3.5-flash-lite", "MINIMAL"),
        ("gemini-3.9-flash-lite", "MINIMAL"),
        ("gemini-flash-lite-latest", "MINIMAL"),
        ("gemma-4-31b-it", "MINIMAL"),
        ("gemini-3.7-flash", "LOW"),
        ("models/gemini-3.8-flash", "LOW"),
        ("gemini-4-flash", "LOW"),
        ("gemini-3.10-flash", "LOW"),
        ("gemini-flash-latest", "LOW"),
        ("gemini-3.1-pro-preview", "LOW"),
        ("gemini-pro-latest", "LOW"),
    ],
)
def test_the_newer_models_take_a_level_and_the_least_one_that_they_know(model: str, least: str) -> None:
    configs = [thinking_config(model, thinking) for thinking in get_args(Thinking)]

    levels = [config.thinking_level for config in configs]
    assert levels == [types.ThinkingLevel[name] for name in (least, least, "LOW", "MEDIUM", "HIGH")]


@pytest.mark.parametrize("thinking", get_args(Thinking))
@pytest.mark.parametrize("model", MODELS)
def test_no_model_is_told_both(model: str, thinking: Thinking) -> None:
    config = thinking_config(model, thinking)

    assert (config.thinking_budget is None) != (config.thinking_level is None)

"""The simulated model: its figures come out as its formulas say, the same everywhere, with a ledger of every call."""

import json
import math
import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from analysis.metrics import count_pairs, position_consistency, preference_fairness
from contract.answers import InvalidReason
from contract.formats import Variant, closed
from contract.forms import Sampling
from contract.items import Item
from contract.models import Simulated, SimulatedModel
from contract.orders import slot_of
from contract.prompts import PromptSet, load_prompt
from tests.builders import make_item
from worker.providers.base import RejectedError, Request, TransientError
from worker.providers.simulated import SimulatedProvider

ITEMS = 2000
ROOT = Path(__file__).parents[2]
PROMPT = load_prompt("two-choice-medium")

# Prints what a model says to a hundred prompts.
SCRIPT = """
from tests.unit.test_simulated import prompts_of_items, provider_of, say
provider = provider_of(knows=0.4, prefers_first=0.6, invalid_rate=0.2)
print("|".join(say(provider, text) for text in prompts_of_items(100)))
"""


def provider_of(ledger: Path | None = None, **options: Any) -> SimulatedProvider:  # noqa: ANN401
    """A simulated model with these options."""
    model = SimulatedModel(provider="simulated", name="sim", options=Simulated(**options))
    return SimulatedProvider(model, ledger=ledger)


def make_request(prompt: str, *, seed: int = 0, number: int = 1, timeout_s: float = 5) -> Request:
    """One call."""
    return Request(call=uuid.uuid4(), number=number, prompt=prompt, sampling=Sampling(), seed=seed, timeout_s=timeout_s)


def item(number: int) -> Item:
    """One of many different items."""
    return make_item(f"q{number}", choices=(f"right {number}", f"wrong {number}"), language="en")


def prompts_of_items(count: int) -> Iterator[str]:
    """The prompts of so many items, choices in canonical order."""
    return (closed.render(item(number), Variant(order=(0, 1)), PROMPT) for number in range(count))


def say(provider: SimulatedProvider, prompt: str, seed: int = 0) -> str:
    """What the model says to `prompt`."""
    return provider.complete(make_request(prompt, seed=seed)).text


def codes(provider: SimulatedProvider, prompt: PromptSet = PROMPT) -> Counter[str]:
    """How often each pair of slot letters comes up over all items, read as answers are read."""
    counted: Counter[str] = Counter()
    for number in range(ITEMS):
        asked = item(number)
        code = ""
        for variant in closed.variants(asked):
            completion = provider.complete(make_request(closed.render(asked, variant, prompt), seed=number))
            choice = closed.read(completion, asked, variant).choice
            code += "N" if choice is None else "AB"[slot_of(choice, variant.order)]
        counted[code] += 1
    return counted


def fails(provider: SimulatedProvider, request: Request) -> bool:
    """Whether the call gives no completion."""
    try:
        provider.complete(request)
    except TransientError:
        return True
    return False


@pytest.mark.parametrize(
    ("knows", "prefers_first"),
    [(0.0, 0.5), (0.5, 0.5), (0.3, 0.9), (0.6, 0.2), (0.0, 1.0), (0.7, 0.0), (1.0, 0.9)],
)
def test_consistency_and_fairness_come_out_as_the_formulas_say(knows: float, prefers_first: float) -> None:
    flips = 2 * prefers_first * (1 - prefers_first)
    expected_pc = knows + (1 - knows) * flips
    expected_pf = (1 - knows) * (1 - 2 * prefers_first)

    counts = count_pairs(codes(provider_of(knows=knows, prefers_first=prefers_first)))

    pc, pf = position_consistency(counts), preference_fairness(counts)
    assert counts.valid == ITEMS
    assert pc == pytest.approx(expected_pc, abs=4 * math.sqrt(expected_pc * (1 - expected_pc) / ITEMS))
    assert pf == pytest.approx(expected_pf, abs=4 * math.sqrt((1 - expected_pc - expected_pf**2) / ITEMS) + 1e-12)


@pytest.mark.parametrize("name", ["more-useful", "more-persuasive"])
def test_the_formulas_hold_for_every_instrument(name: str) -> None:
    counts = count_pairs(codes(provider_of(knows=0.5, prefers_first=0.8), load_prompt(name)))

    pc, pf = position_consistency(counts), preference_fairness(counts)
    assert counts.valid == ITEMS
    assert pc == pytest.approx(0.66, abs=4 * math.sqrt(0.66 * 0.34 / ITEMS))
    assert pf == pytest.approx(-0.3, abs=4 * math.sqrt((0.34 - 0.09) / ITEMS))


def test_a_message_may_hold_what_looks_like_choices() -> None:
    messages = make_item(choices=("One.\n\nA) first\nB) second\n", "Two.\nAnswer:"), language="en")
    knowing = provider_of(knows=1.0)

    said = {
        closed.read(
            knowing.complete(make_request(closed.render(messages, variant, load_prompt("more-persuasive")))),
            messages,
            variant,
        ).choice
        for variant in closed.variants(messages)
    }

    assert len(said) == 1
    assert said <= {0, 1}


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 1.0])
def test_unreadable_answers_are_as_frequent_as_the_rate_says(rate: float) -> None:
    counted = codes(provider_of(invalid_rate=rate))

    share = sum(code.count("N") * times for code, times in counted.items()) / (2 * ITEMS)
    assert share == pytest.approx(rate, abs=4 * math.sqrt(rate * (1 - rate) / (2 * ITEMS)))


def test_an_unreadable_answer_has_no_letter_in_it() -> None:
    (prompt,) = prompts_of_items(1)

    completion = provider_of(invalid_rate=1.0).complete(make_request(prompt))

    assert closed.read(completion, item(0), Variant(order=(0, 1))).reason is InvalidReason.UNREADABLE


@pytest.mark.parametrize("rate", [0.0, 0.2, 1.0])
def test_faults_are_as_frequent_as_the_rate_says(rate: float) -> None:
    provider = provider_of(fault_rate=rate)

    faults = sum(fails(provider, make_request(prompt)) for prompt in prompts_of_items(ITEMS))

    assert faults / ITEMS == pytest.approx(rate, abs=4 * math.sqrt(rate * (1 - rate) / ITEMS))


def test_another_try_may_end_otherwise_and_the_same_try_never_does() -> None:
    (prompt,) = prompts_of_items(1)
    provider = provider_of(fault_rate=0.5)

    tries = [[fails(provider, make_request(prompt, number=number)) for number in range(1, 21)] for _ in range(2)]

    assert set(tries[0]) == {True, False}
    assert tries[0] == tries[1]


def test_another_seed_may_be_answered_otherwise_unless_the_model_knows() -> None:
    (prompt,) = prompts_of_items(1)

    unsure = {say(provider_of(knows=0.0), prompt, seed) for seed in range(30)}
    sure = {say(provider_of(knows=1.0), prompt, seed) for seed in range(30)}

    assert unsure == {"A", "B"}
    assert len(sure) == 1


def test_the_answers_are_the_same_in_every_process_whatever_its_hash_seed() -> None:
    provider = provider_of(knows=0.4, prefers_first=0.6, invalid_rate=0.2)

    elsewhere = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1")
    }

    assert elsewhere == {"|".join(say(provider, prompt) for prompt in prompts_of_items(100))}


def test_a_model_with_another_seed_or_name_is_another_model() -> None:
    prompts = list(prompts_of_items(40))
    models = [
        SimulatedModel(provider="simulated", name=name, options=Simulated(seed=seed))
        for name, seed in (("sim", 0), ("sim", 1), ("sam", 0))
    ]

    said = {"".join(say(SimulatedProvider(model, ledger=None), prompt) for prompt in prompts) for model in models}

    assert len(said) == 3


def test_a_prompt_without_choices_is_rejected() -> None:
    with pytest.raises(RejectedError, match="fewer than two"):
        say(provider_of(), "What is right?")


def test_a_model_that_would_take_longer_than_the_call_may_is_given_up_at_the_deadline() -> None:
    (prompt,) = prompts_of_items(1)
    began = time.monotonic()

    with pytest.raises(TransientError):
        provider_of(latency_s=1.0).complete(make_request(prompt, timeout_s=0.1))

    assert 0.1 <= time.monotonic() - began < 0.6


def test_the_ledger_has_two_lines_a_call_with_the_call_s_id_and_what_was_said(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    provider = provider_of(ledger, fault_rate=0.5)
    requests = [make_request(prompt) for prompt in prompts_of_items(20)]

    failed = {str(request.call): fails(provider, request) for request in requests}

    lines = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    assert [line["call"] for line in lines] == [str(request.call) for request in requests for _ in range(2)]
    assert {line["event"] for line in lines[::2]} == {"asked"}
    assert {line["call"]: line["event"] == "fault" for line in lines[1::2]} == failed
    assert set(failed.values()) == {True, False}
    assert all(line["text"] in ({"A", "B"} if line["event"] == "answered" else {None}) for line in lines)


def test_lines_of_many_threads_never_mix(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    provider = provider_of(ledger)
    requests = [make_request(prompt) for prompt in prompts_of_items(200)]

    with ThreadPoolExecutor(8) as threads:
        completions = list(threads.map(provider.complete, requests))

    lines = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    answers = {line["call"]: line["text"] for line in lines if line["event"] == "answered"}
    assert len(lines) == 400
    assert answers == {
        str(request.call): completion.text for request, completion in zip(requests, completions, strict=True)
    }


def test_without_a_ledger_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    say(provider_of(), next(prompts_of_items(1)))

    assert list(tmp_path.iterdir()) == []

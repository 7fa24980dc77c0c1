"""A simulated model: answers by known rules, so that every figure can be predicted.

Of any two-choice item it `knows` the answer with probability k: then it picks the same choice in both orders. Of the
others it picks the first slot with probability f, each order on its own. So over many items, without invalid answers:

    PC = k + (1 - k) * 2 f (1 - f)          PF = (1 - k) * (1 - 2 f)

Where any text is an answer it makes one up; of a scale it takes any point, and an annotation names any choice. A
completion is unreadable with `invalid_rate` (a text that was asked for is empty then) and the call fails with
`fault_rate`. All draws are seeded hashes of the
prompt (and of the request's seed and number where another try may differ): a study gives the same answers anywhere.
"""

import hashlib
import json
import os
import re
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

from contract.completion import Completion
from contract.models import SimulatedModel
from worker.providers.base import Description, Endpoint, RejectedError, Request, TransientError

_CHOICE_LINE = re.compile(r"^([A-Z])[).] (.*)$", re.MULTILINE)
_OPTION_LINE = re.compile(r"^[0-9]+\. (.*)$", re.MULTILINE)
_HIGHEST = re.compile(r"from 1 \([^()]*\) to ([0-9]+) \(")
_MESSAGE = re.compile(r"^---- (Message [0-9]+): ----\n", re.MULTILINE)
_END = "Answer:"
_UNREADABLE = "I would rather not commit to one of them."


class SimulatedProvider:
    """One simulated model with its own ledger: one JSON line a call, written before and after it."""

    def __init__(self, model: SimulatedModel, *, ledger: Path | None) -> None:
        self.endpoint = Endpoint(provider="simulated", model=model.model, label=None)
        self._options = model.options
        self._name = model.name
        self._ledger = ledger

    def complete(self, request: Request) -> Completion:
        """Answer by the rules; TransientError as often as `fault_rate` says."""
        self._note(request, "asked")
        if self._options.kills is not None and self._options.kills in request.prompt:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._options.latency_s:
            time.sleep(min(self._options.latency_s, request.timeout_s))
        if self._options.latency_s > request.timeout_s:
            self._note(request, "timed out")
            raise TransientError("no answer within the time allowed")
        if self._draw("fault", request.prompt, str(request.seed), str(request.number)) < self._options.fault_rate:
            self._note(request, "fault")
            raise TransientError("simulated fault")
        text = self._answer(request)
        self._note(request, "answered", text)
        return Completion(
            text=text,
            finish_reason="stop",
            tokens_in=len(request.prompt.split()),
            tokens_out=len(text.split()),
            model_reported=self.endpoint.model,
        )

    def models(self) -> list[str] | None:
        """Any name will do."""
        return None

    def describe(self) -> Description:
        """Nothing: there is no server."""
        return Description()

    def _answer(self, request: Request) -> str:
        if request.expects != "letter":
            return self._other(request)
        question, shown = _shown(request.prompt)
        if len(shown) < 2:
            raise RejectedError(
                "a simulated model needs choices that stand as 'A) text' lines, or as messages under '---- Message 1: "
                "----'; there are fewer than two"
            )
        if self._draw("invalid", request.prompt, str(request.seed)) < self._options.invalid_rate:
            return _UNREADABLE
        content = sorted(text for _, text in shown)
        if self._draw("knows", question, *content) < self._options.knows:
            favourite = content[int(self._draw("favourite", question, *content) * len(content))]
            return next(label for label, text in shown if text == favourite)
        first = self._draw("slot", request.prompt, str(request.seed)) < self._options.prefers_first
        return shown[0][0] if first else shown[1][0]

    def _other(self, request: Request) -> str:
        """What it says where no letter is asked for."""
        if self._draw("invalid", request.prompt, str(request.seed)) < self._options.invalid_rate:
            return ""
        drawn = self._draw("text", request.prompt, str(request.seed))
        highest, options = _HIGHEST.findall(request.prompt), _OPTION_LINE.findall(request.prompt)
        if request.expects == "rating" and highest:
            return str(1 + int(drawn * int(highest[-1])))
        if request.expects == "choice_text" and options:
            return str(options[int(drawn * len(options))])
        return f"made up {drawn:.9f}"

    def _draw(self, *parts: str) -> float:
        """A number in [0, 1) that depends on nothing but the model and `parts`."""
        text = "\x1f".join((str(self._options.seed), self._name, *parts))
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") / 2**64

    def _note(self, request: Request, event: str, text: str | None = None) -> None:
        if self._ledger is None:
            return
        entry = {"call": str(request.call), "event": event, "at": datetime.now(UTC).isoformat(), "text": text}
        line = (json.dumps(entry) + "\n").encode()
        # One write to a file opened for appending: lines of several processes never mix.
        handle = os.open(self._ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)


def _shown(prompt: str) -> tuple[str, list[tuple[str, str]]]:
    """What stands before the choices, and each choice with its label, in the order in which they are shown."""
    question, *rest = _MESSAGE.split(prompt)
    if rest:
        texts = (text.strip().removesuffix(_END).strip() for text in rest[1::2])
        return question, list(zip(rest[::2], texts, strict=True))
    lines = list(_CHOICE_LINE.finditer(prompt))
    return prompt[: lines[0].start()] if lines else prompt, [(line[1], line[2]) for line in lines]

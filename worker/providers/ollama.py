"""A model that a GPU host serves with Ollama, through Ollama's own API."""

import math
import weakref
from operator import attrgetter
from typing import Any

import ollama

from contract.completion import Completion
from contract.models import OllamaModel, whole_tag
from worker.providers.base import Description, Endpoint, MisconfiguredError, Request, Warmth
from worker.providers.ollama_host import OllamaHost, chat_body

_WORTH_TELLING = 0.01


class OllamaProvider:
    """One model on one host. Whoever opened the host closes it."""

    def __init__(self, model: OllamaModel, host: OllamaHost) -> None:
        self.endpoint = Endpoint(provider="ollama", model=model.model, label=host.label)
        self._options = model.options
        self._host = host

    def complete(self, request: Request) -> Completion:
        """Ask once, over a stream, and be back within `request.timeout_s` however slowly the server answers."""
        return _collect(self._host.chat(self._body(request), request.timeout_s, request.prompt))

    def models(self) -> list[str] | None:
        """The tags that the host has."""
        return sorted(self._host.tags())

    def describe(self) -> Description:
        """Weights, quantisation, template and server of the model on this host."""
        return self._host.describe(self.endpoint.model)

    def warm_up(self, most: int, timeout_s: float) -> Warmth:
        """Load the model with the context that calls ask for, and see how the host runs it.

        MisconfiguredError where the host gives it less context than that.
        """
        model, label = self.endpoint.model, self._host.label
        self._host.warm_up(model, self._options, timeout_s)
        running = next((each for each in self._host.loaded() if each.model == whole_tag(model)), None)
        note = None
        if running is not None:
            if running.context_length is not None and running.context_length < self._options.context:
                raise MisconfiguredError(
                    f"{label} gives {model} {running.context_length:,} tokens of context, the study asks for "
                    f"{self._options.context:,}: free memory there or lower options.context"
                )
            if running.on_cpu >= _WORTH_TELLING:
                note = f"{label} runs {running.on_cpu:.0%} of {model} on its CPU: it does not fit the GPU and is slow"
        return Warmth(slots=self._host.parallel(model, self._options, most, timeout_s), note=note)

    def _body(self, request: Request) -> dict[str, Any]:
        sampling = request.sampling
        body = chat_body(
            self.endpoint.model,
            self._options,
            prompt=request.prompt,
            num_predict=sampling.max_tokens,
            seed=request.seed,
            temperature=sampling.temperature,
            **({} if sampling.top_p is None else {"top_p": sampling.top_p}),
        )
        if request.allowed is not None:
            body["format"] = {"type": "string", "enum": list(request.allowed)}
        if sampling.logprobs is not None:
            body |= {"logprobs": True, "top_logprobs": sampling.logprobs}
        return body


def open_ollama(model: OllamaModel, base_url: str, machine: str | None = None) -> OllamaProvider:
    """A model on a host that is let go of together with it."""
    host = OllamaHost(base_url, machine)
    provider = OllamaProvider(model, host)
    weakref.finalize(provider, host.close)
    return provider


def _collect(lines: list[ollama.ChatResponse]) -> Completion:
    """Put the lines of a whole stream together; the last one counts and tells how it ended."""
    last = lines[-1]
    return Completion(
        text="".join(line.message.content or "" for line in lines),
        thinking="".join(line.message.thinking or "" for line in lines) or None,
        finish_reason=last.done_reason,
        tokens_in=last.prompt_eval_count,
        tokens_out=last.eval_count,
        model_reported=last.model,
        logprobs=_first_token(lines),
    )


def _first_token(lines: list[ollama.ChatResponse]) -> dict[str, float] | None:
    """The candidates for the first token of the text, the best first; what was thought before it has its own."""
    first = next((line for line in lines if line.message.content), None)
    if first is None or not first.logprobs:
        return None
    candidates: dict[str, float] = {}
    for candidate in sorted(first.logprobs[0].top_logprobs or (), key=attrgetter("logprob"), reverse=True):
        if math.isfinite(candidate.logprob):
            candidates.setdefault(candidate.token, candidate.logprob)
    return candidates or None

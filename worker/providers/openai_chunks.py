"""A streamed answer put together: text, reasoning, usage, and the candidates for the first token of the text."""

from collections.abc import Iterable

from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDelta
from openai.types.completion_usage import CompletionUsage

from contract.completion import Completion
from worker.providers.base import RefusedError, TransientError

_IMPOSSIBLE = -9999.0
"""What vLLM writes for a probability of nothing, which JSON has no number for; llama.cpp writes a lower one yet."""


def collected(chunks: Iterable[ChatCompletionChunk]) -> Completion:
    """Put the chunks together; a stream that ends without a finish reason was cut off and is no completion.

    Raises TransientError for that, and RefusedError for an answer that a content filter ended.
    """
    text: list[str] = []
    thinking: list[str] = []
    finish = model = version = usage = logprobs = None
    for chunk in chunks:
        model = chunk.model or model
        version = chunk.system_fingerprint or version
        usage = chunk.usage or usage
        for choice in (chunk.choices or [])[:1]:
            said, thought = _text(choice.delta.content), _thought(choice.delta)
            # Reasoning has candidates of its own: where it shares a chunk with the text, whose come first is not told.
            if said and not any(text) and not thought:
                logprobs = candidates(choice.logprobs)
            text.append(said)
            thinking.append(thought)
            finish = choice.finish_reason or finish
    if finish is None:
        raise TransientError("the stream ended before the answer was finished")
    if finish == "content_filter":
        raise RefusedError("the provider's content filter blocked the answer")
    return Completion(
        text="".join(text),
        thinking="".join(thinking) or None,
        finish_reason=finish,
        tokens_in=usage.prompt_tokens if usage else None,
        tokens_out=usage.completion_tokens if usage else None,
        tokens_cached=_cached(usage),
        model_reported=model,
        server_version=version,
        logprobs=logprobs,
    )


def candidates(told: object) -> dict[str, float] | None:
    """The candidates for the first token in what a choice tells of log-probabilities, the best first.

    The token that was chosen is among them; what has no finite log-probability is not. None where nothing is told.
    """
    tokens = getattr(told, "content", None)
    if not isinstance(tokens, list) or not tokens:
        return None
    others = getattr(tokens[0], "top_logprobs", None)
    found: dict[str, float] = {}
    for candidate in (tokens[0], *(others if isinstance(others, list) else ())):
        token, logprob = getattr(candidate, "token", None), getattr(candidate, "logprob", None)
        # Other bytes may read the same once they are text: the likeliest stands for all.
        if isinstance(token, str) and isinstance(logprob, float) and _IMPOSSIBLE < logprob < float("inf"):
            found[token] = max(logprob, found.get(token, logprob))
    return dict(sorted(found.items(), key=lambda pair: -pair[1])) or None


def _thought(delta: ChoiceDelta) -> str:
    """A piece of reasoning, under the older or the newer name that servers give it."""
    return _text(getattr(delta, "reasoning_content", None)) or _text(getattr(delta, "reasoning", None))


def _cached(usage: CompletionUsage | None) -> int | None:
    return usage.prompt_tokens_details.cached_tokens if usage and usage.prompt_tokens_details else None


def _text(said: object) -> str:
    """A piece of text; nothing if it is none: the SDK does not check what it hands on."""
    return said if isinstance(said, str) else ""

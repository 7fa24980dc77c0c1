"""What came back from one provider call, unread."""

from dataclasses import dataclass

_CUT_OFF = frozenset(("length", "recitation", "other", "language", "malformed_response"))


@dataclass(frozen=True, kw_only=True)
class Completion:
    """The raw text of one call with what the provider said about it.

    `text` is what an answer is read from; `thinking` is kept apart and never read. Token counts are None where the
    provider does not tell them: missing is never zero. `truncated_from` is the length in characters that the text had
    before it was cut to what a row may hold. `finish_reason` is "stop", "length", or the provider's own word.
    `logprobs`: the candidates for the first token of the text with their natural-log probabilities, the best first.
    """

    text: str
    thinking: str | None = None
    finish_reason: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    model_reported: str | None = None
    server_version: str | None = None
    logprobs: dict[str, float] | None = None
    truncated_from: int | None = None

    @property
    def stopped_by_length(self) -> bool:
        """Whether the model was cut off by its answer budget."""
        return self.finish_reason == "length"

    @property
    def cut_off(self) -> bool:
        """Whether the text ends where the model did not end it, for whatever reason."""
        return self.finish_reason in _CUT_OFF

"""What a request says in words that differ between OpenAI-compatible servers: budget, log-probabilities, limits."""

from typing import Literal

from worker.providers.base import MisconfiguredError, Request

BudgetName = Literal["max_tokens", "max_completion_tokens"]
"""What a server calls the answer budget: nearly all know the older name, the newest hosted models only the newer."""

_ESCAPES = str.maketrans(
    {'"': '\\"', "\\": "\\\\"} | {chr(code): f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
)


def further_fields(request: Request, *, budget: BudgetName, constrains_by: str | None) -> dict[str, object]:
    """The fields that a request's body has beside those that every server knows.

    `constrains_by` is the model's own; MisconfiguredError where it is None and `request.allowed` is not.
    """
    fields: dict[str, object] = {budget: request.sampling.max_tokens}
    if request.sampling.logprobs is not None:
        fields |= {"logprobs": True, "top_logprobs": request.sampling.logprobs}
    if request.allowed is not None:
        fields |= _limited_to(request.allowed, constrains_by)
    return fields


def _limited_to(allowed: tuple[str, ...], constrains_by: str | None) -> dict[str, object]:
    """The field that lets the model say nothing but one of the `allowed` texts."""
    match constrains_by:
        case "structured_outputs":
            return {"structured_outputs": {"choice": list(allowed)}}
        case "guided_choice":
            return {"guided_choice": list(allowed)}
        case "grammar":
            return {"grammar": "root ::= " + " | ".join(f'"{text.translate(_ESCAPES)}"' for text in allowed)}
        case "json_schema":
            return {"response_format": _schema(allowed)}
        case _:
            raise MisconfiguredError(
                "the format limits the answers, and how this server takes a limit is not known: give the model "
                "constrains_by: structured_outputs, guided_choice, grammar or json_schema"
            )


def _schema(allowed: tuple[str, ...]) -> dict[str, object]:
    """A schema with an object around the answer: hosted servers take nothing else at the root."""
    schema = {
        "type": "object",
        "properties": {"answer": {"type": "string", "enum": list(allowed)}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}

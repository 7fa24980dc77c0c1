"""First contact with what answers: one call before a hundred thousand, and what in its outcome would spoil them all.

Pure: the call to make and the judgement of what came back. `worker.access` makes it.
"""

import re
import uuid
from dataclasses import asdict

from contract.completion import Completion
from contract.conditions import Rules
from contract.items import canonical_digest
from contract.models import GeminiModel, Model, OllamaModel, OpenAIModel, pools_of
from worker.providers.base import Description, Endpoint, MisconfiguredError, ProviderError, Request

CANARY_PROMPT = """\
Which of these two letters comes first in the alphabet?
A) A
B) B
Answer with the letter alone."""

LETTERS = ("A", "B")
ANY_VERSION = "latest"
"""A model name that ends so promises no version."""


def contact_digest(rules: Rules, endpoint: Endpoint, description: Description) -> str:
    """What is met: who answers, as far as it is known before it does, and all that is sent beside the prompt."""
    model = rules.model
    parts = {
        "endpoint": asdict(endpoint),
        "description": asdict(description),
        "options": None if not hasattr(model, "options") else model.options.model_dump(mode="json"),
        "sampling": rules.format.sampling.model_dump(mode="json"),
        "constrain": _constrains(rules),
    }
    return canonical_digest(parts)


def canary_request(rules: Rules) -> Request:
    """The call: as every job's, with a question of ours."""
    return Request(
        call=uuid.uuid4(),
        number=1,
        prompt=CANARY_PROMPT,
        sampling=rules.format.sampling,
        seed=rules.format.sampling.seed,
        timeout_s=rules.model.timeout_s,
        allowed=LETTERS if _constrains(rules) else None,
    )


def _constrains(rules: Rules) -> bool:
    """Whether any call may be limited to the letters: a server that cannot do that must show it before it is paid."""
    return rules.format.constrain or (rules.retry.strategy == "constrain" and rules.retry.invalid > 0)


def unfit(rules: Rules, description: Description) -> str | None:
    """Why the model as it is described must not be asked; None if nothing speaks against it."""
    if not isinstance(rules.model, OllamaModel):
        return None
    options, tag = rules.model.options, rules.model.model
    if options.digest and not (description.digest or "").startswith(options.digest):
        return f"{tag} has the digest {description.digest}, the study asks for {options.digest}: pull that one"
    if description.context_length is not None and options.context > description.context_length:
        return (
            f"{tag} takes {description.context_length:,} tokens of context, the study asks for {options.context:,}: "
            "lower options.context"
        )
    return None


def spoilt(rules: Rules, completion: Completion) -> str | None:
    """Why every further call would be in vain though this one was answered; None if it need not be."""
    if completion.text.strip() or not completion.stopped_by_length:
        return None
    spent = "" if completion.tokens_out is None else f" of {completion.tokens_out} tokens"
    more = {
        GeminiModel: "raise options.room",
        OllamaModel: "set options.think to false or raise sampling.max_tokens",
    }.get(type(rules.model), "raise sampling.max_tokens or turn the model's thinking off")
    return f"the whole answer{spent} went into thinking and nothing was said: {more}"


def stop_reason(model: Model, error: ProviderError, pool: str | None = None) -> str:
    """What a fault says that no call will get over, and where the key is from if that was not accepted.

    `pool`: the one that the call went through, the first of the model's if that is not known.
    """
    if not (
        isinstance(model, OpenAIModel | GeminiModel) and isinstance(error, MisconfiguredError) and error.credential
    ):
        return str(error)
    pool = pool or next(iter(pools_of(model)), None)
    if pool is not None:
        return f"{error} (look at the key of the pool {pool})"
    if model.api_key_env is None:
        return f"{error} (no key was sent: name its variable with api_key_env)"
    return f"{error} (look at the key in {model.api_key_env})"


def rerouted(rules: Rules, completion: Completion) -> str | None:
    """Why the very first answer is not from the model that was asked; None if it may be.

    Gemini tells the version that answered. A retired model may be answered for by another one without a word; the name
    that was asked for, with a number, a date or a word like preview behind it, is a version of it.
    """
    asked, told = rules.model.model, completion.model_reported
    if not isinstance(rules.model, GeminiModel) or told is None or asked.endswith(ANY_VERSION):
        return None
    wanted = re.escape(asked.removeprefix("models/"))
    if re.fullmatch(rf"{wanted}(-(\d|preview|exp).*)?", told.removeprefix("models/")):
        return None
    return f"{told} answered though {asked} was asked"


def stop_scope(label: str | None, rules: Rules) -> str:
    """The host that a stop holds for; empty where every worker would meet the same."""
    return (label or "") if isinstance(rules.model, OllamaModel) else ""

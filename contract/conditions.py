"""Conditions: one way of asking, told apart by a digest of everything that can change an answer."""

from dataclasses import dataclass
from typing import Any

from contract.formats import Variant
from contract.forms import Form, Sampling, parse_form
from contract.items import canonical_digest
from contract.models import Model, OllamaModel, OpenAIModel, parse_model, whole_tag
from contract.prompts import PromptSet
from contract.recorded import RecordedModel
from contract.study import Bundles, Retry


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Dataset x model x format x variant x stage, with its sampling and prompt.

    `of` is the digest of the condition whose answers this one is shown, None where it needs none.

    `spec` is exactly what the digest covers. Retry and reading rules, bundles, addresses and time-outs are not in it:
    changing them keeps the answers that are there.
    """

    dataset: str
    model: Model
    format: Form
    variant: Variant
    prompt: PromptSet
    of: str | None = None

    @property
    def stage(self) -> str:
        """What its answers are for: answer, generate."""
        return self.format.stage

    @property
    def spec(self) -> dict[str, Any]:
        """What makes this condition this condition, as JSON."""
        spec: dict[str, Any] = {
            "dataset": self.dataset,
            "model": _model_identity(self.model),
            "format": self.format.format,
            "variant": self.variant.spec,
            "stage": self.stage,
            "sampling": _sampling_identity(self.format.sampling),
            "prompt": {"name": self.prompt.name, "digest": self.prompt.digest},
        }
        if self.format.constrain:
            spec["constrain"] = True
        if self.of is not None:
            spec["of"] = self.of
        return spec

    @property
    def digest(self) -> str:
        """The digest of `spec`: the condition's identity within its study."""
        return canonical_digest(self.spec)

    @property
    def queue(self) -> str:
        """The queue that its jobs travel on: one a provider and model, so that no model can block another."""
        return queue_for(self.model)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a worker needs beside the condition's spec, taken from the newest revision of the study."""

    model: Model
    format: Form
    prompt: PromptSet
    retry: Retry
    bundles: Bundles

    @property
    def stored(self) -> dict[str, Any]:
        """The rules as the condition's row holds them."""
        return {
            "model": self.model.model_dump(mode="json"),
            "format": self.format.model_dump(mode="json"),
            "prompt": {"name": self.prompt.name, "bodies": dict(self.prompt.bodies)},
            "retry": self.retry.model_dump(mode="json"),
            "bundles": self.bundles.model_dump(mode="json"),
        }

    @classmethod
    def from_stored(cls, stored: dict[str, Any]) -> "Rules":
        """The inverse of `stored`."""
        return cls(
            model=parse_model(stored["model"]),
            format=parse_form(stored["format"]),
            prompt=PromptSet(name=stored["prompt"]["name"], bodies=stored["prompt"]["bodies"]),
            retry=Retry.model_validate(stored["retry"]),
            bundles=Bundles.model_validate(stored["bundles"]),
        )


def queue_for(model: Model) -> str:
    """The queue of `model`: its provider, then the name that the study gives it.

    A model of GPU hosts goes by its tag and its context: two studies may call different ones by one name, and a host
    that changed between them would load with every call.
    """
    if isinstance(model, OllamaModel):
        return f"{model.provider}.{whole_tag(model.model)}@{model.options.context}"
    return f"{model.provider}.{model.name}"


def _model_identity(model: Model) -> dict[str, Any]:
    identity: dict[str, Any] = {"provider": model.provider, "name": model.name, "model": model.model}
    if not isinstance(model, OpenAIModel | RecordedModel):
        # What is not set is left out, so that an option that comes with a newer version changes no digest.
        identity["options"] = model.options.model_dump(mode="json", exclude_none=True)
    return identity


def _sampling_identity(sampling: Sampling) -> dict[str, Any]:
    """The sampling; what came with a newer version is left out where it is not set."""
    identity = sampling.model_dump(mode="json")
    if sampling.logprobs is None:
        del identity["logprobs"]
    return identity

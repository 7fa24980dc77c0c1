"""Formats: how the model must answer. One module a format, each with the same four pure functions."""

from dataclasses import dataclass
from typing import Any, Literal

from contract.orders import Order, print_order


@dataclass(frozen=True, kw_only=True)
class Variant:
    """What varies within a format, and nothing of the others.

    Closed: the `order` in which the choices are shown. Likert: the `points` of the scale and its `polarity`. Open, and
    the annotation of what was said there: whether `reasoning` was asked for. A recipe: the `step`.
    """

    order: Order = ()
    points: int | None = None
    polarity: Literal["positive", "negative"] | None = None
    reasoning: bool | None = None
    step: str | None = None

    @property
    def label(self) -> str:
        """How the variant is printed: "21", "4-negative", "reasoning", the step's name."""
        if self.points is not None:
            return f"{self.points}-{self.polarity}"
        if self.reasoning is not None:
            return "reasoning" if self.reasoning else "no-reasoning"
        return self.step or print_order(self.order)

    @property
    def spec(self) -> dict[str, Any]:
        """The variant as a condition's spec holds it."""
        known = {"points": self.points, "polarity": self.polarity, "reasoning": self.reasoning, "step": self.step}
        told = {name: value for name, value in known.items() if value is not None}
        return told or {"order": list(self.order)}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> "Variant":
        """The inverse of `spec`."""
        return cls(**spec | {"order": tuple(spec.get("order", ()))})

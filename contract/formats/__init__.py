"""Formats: how the model must answer. One module a format, each with the same four pure functions."""

from dataclasses import dataclass
from typing import Any

from contract.orders import Order, print_order


@dataclass(frozen=True, kw_only=True)
class Variant:
    """What varies within a format: for closed answers the order in which the choices are shown, for a recipe the step.

    `order` is empty for a step.
    """

    order: Order = ()
    step: str | None = None

    @property
    def label(self) -> str:
        """How the variant is printed, e.g. "21"."""
        return self.step or print_order(self.order)

    @property
    def spec(self) -> dict[str, Any]:
        """The variant as a condition's spec holds it."""
        return {"order": list(self.order)} if self.step is None else {"step": self.step}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> "Variant":
        """The inverse of `spec`."""
        return cls(order=tuple(spec.get("order", ())), step=spec.get("step"))

"""Formats: how the model must answer. One module a format, each with the same four pure functions."""

from dataclasses import dataclass

from contract.orders import Order, print_order


@dataclass(frozen=True, kw_only=True)
class Variant:
    """What varies within a format: for closed answers, the order in which the choices are shown."""

    order: Order

    @property
    def label(self) -> str:
        """How the variant is printed, e.g. "21"."""
        return print_order(self.order)

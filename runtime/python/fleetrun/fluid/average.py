"""paddle.fluid.average: means that a script keeps."""

from __future__ import annotations

from fleetrun import _lazy
from fleetrun._error import Error
from fleetrun._types import Any

__all__ = ["WeightedAverage"]


class WeightedAverage:
    """add(value, weight) and eval(): the mean of the values by their weights."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begins again."""
        self.numerator: Any = None
        self.denominator: Any = None

    def add(self, value: Any, weight: Any) -> None:
        """One more value: a number or an array of one."""
        value = value * weight
        self.numerator = value if self.numerator is None else self.numerator + value
        self.denominator = weight if self.denominator is None else self.denominator + weight

    def eval(self) -> Any:
        """The mean. Throws: Error(config) before the first add()."""
        if self.numerator is None or not self.denominator:
            raise Error("config", "WeightedAverage.eval() of no values", "call add(value, weight) first")
        return self.numerator / self.denominator


__getattr__, __dir__ = _lazy.attach(__name__)

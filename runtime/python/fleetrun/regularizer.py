"""Weight decay."""

from fleetrun import _lazy
from fleetrun._arguments import plain
from fleetrun._error import Error

__all__ = ["coefficients", "L1Decay", "L2Decay", "WeightDecay"]


class WeightDecay:
    """Base of both: `coeff` is the decay's coefficient."""

    def __init__(self, coeff: float = 0.0) -> None:
        self.coeff = float(coeff)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.coeff})"


class L2Decay(WeightDecay):
    """Adds `coeff` * w to the gradient of w. In a sparse table: of the rows that a batch looks up."""


class L1Decay(WeightDecay):
    """Adds `coeff` * sign(w) to the gradient of w. In a sparse table: of the rows that a batch looks up."""


def coefficients(regularizer: float | WeightDecay | None, function: str) -> tuple[float, float]:
    """(L1, L2) of None, a number (L2) or a decay. Throws: Error(config)."""
    regularizer = plain(regularizer)
    if regularizer is None:
        return 0.0, 0.0
    if isinstance(regularizer, L1Decay):
        return regularizer.coeff, 0.0
    if isinstance(regularizer, L2Decay):
        return 0.0, regularizer.coeff
    if isinstance(regularizer, (int, float)):
        return 0.0, float(regularizer)
    raise Error(
        "config",
        f"{function}: {regularizer!r} is not a weight decay",
        "use paddle.regularizer.L1Decay(coeff) or L2Decay(coeff)",
    )


__getattr__, __dir__ = _lazy.attach(__name__)

"""Weight decay."""

from fleetrun import _lazy
from fleetrun._error import Error


class L2Decay:
    """Adds `coeff` * w to the gradient of w."""

    def __init__(self, coeff=0.0):
        self.coeff = float(coeff)

    def __repr__(self):
        return f"L2Decay({self.coeff})"


def coefficient(regularizer, function):
    """The L2 coefficient of None, a number or an L2Decay. Throws: Error(config)."""
    if regularizer is None:
        return 0.0
    if isinstance(regularizer, L2Decay):
        return regularizer.coeff
    if isinstance(regularizer, (int, float)):
        return float(regularizer)
    raise Error("config", f"{function}: {regularizer!r} is no weight decay", "use paddle.regularizer.L2Decay(coeff)")


__getattr__, __dir__ = _lazy.attach(__name__, "paddle.regularizer", {"L2Decay": "regularizer:L2Decay"})

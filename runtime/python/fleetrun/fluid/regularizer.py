"""paddle.fluid.regularizer: weight decay under the names and arguments of Paddle 1.x."""

from fleetrun import _lazy, regularizer

__all__ = ["L1Decay", "L1DecayRegularizer", "L2Decay", "L2DecayRegularizer"]


class L2DecayRegularizer(regularizer.L2Decay):
    """Adds regularization_coeff * w to the gradient of w."""

    def __init__(self, regularization_coeff: float = 0.0) -> None:
        super().__init__(regularization_coeff)


class L1DecayRegularizer(regularizer.L1Decay):
    """Adds regularization_coeff * sign(w) to the gradient of w."""

    def __init__(self, regularization_coeff: float = 0.0) -> None:
        super().__init__(regularization_coeff)


L1Decay, L2Decay = L1DecayRegularizer, L2DecayRegularizer

__getattr__, __dir__ = _lazy.attach(__name__)

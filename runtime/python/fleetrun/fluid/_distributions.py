"""fluid.layers.Normal, Uniform and Categorical: random numbers of a program, their entropy and likelihood."""

from __future__ import annotations

import math

import numpy

from fleetrun import _lazy, tensor
from fleetrun._types import Any, Sequence, Variable
from fleetrun.fluid import layers
from fleetrun.nn import functional

__all__ = ["Categorical", "Normal", "Uniform"]


def _variable(value):
    """A number or an array as float32, a variable as it is."""
    if hasattr(value, "program"):
        return value
    return tensor.assign(numpy.atleast_1d(numpy.asarray(value, dtype="float32")))


class _Located:
    """Two parameters of one shape [..]; samples are [*shape, ..]."""

    def __init__(self, first: Any, second: Any) -> None:
        self._first, self._second = _variable(first), _variable(second)
        # Of two numbers a sample has no axis of its own.
        self._plain = isinstance(first, (int, float)) and isinstance(second, (int, float))

    def _shaped(self, draws: Variable, shape: Sequence[int]) -> Variable:
        return tensor.reshape(draws, [int(one) for one in shape]) if self._plain and shape else draws


class Normal(_Located):
    """Normal with the mean loc and the deviation scale, each a number, an array or a variable."""

    def __init__(self, loc: Any, scale: Any) -> None:
        super().__init__(loc, scale)
        self.loc, self.scale = self._first, self._second

    def sample(self, shape: Sequence[int], seed: int = 0) -> Variable:
        """Draws of [*shape, ..]."""
        like = _repeated(self.loc + self.scale, [int(one) for one in shape])
        draws = layers.gaussian_random_batch_size_like(like, [-1, *like.shape[1:]], seed=seed)
        return self._shaped(draws * self.scale + self.loc, shape)

    def entropy(self) -> Variable:
        """0.5 + 0.5 log(2 pi) + log(scale)."""
        return tensor.log(self.scale) + tensor.zeros_like(self.loc) + (0.5 + 0.5 * math.log(2 * math.pi))

    def log_prob(self, value: Variable) -> Variable:
        """The logarithm of the density at `value`."""
        away = (value - self.loc) / self.scale
        return away * away * -0.5 - tensor.log(self.scale) - math.log(math.sqrt(2 * math.pi))

    def kl_divergence(self, other: Normal) -> Variable:
        """The divergence of this one from `other`."""
        ratio = self.scale / other.scale
        away = (self.loc - other.loc) / other.scale
        return (ratio * ratio + away * away - 1.0 - tensor.log(ratio * ratio)) * 0.5


class Uniform(_Located):
    """Uniform in [low, high), each a number, an array or a variable."""

    def __init__(self, low: Any, high: Any) -> None:
        super().__init__(low, high)
        self.low, self.high = self._first, self._second

    def sample(self, shape: Sequence[int], seed: int = 0) -> Variable:
        """Draws of [*shape, ..]."""
        like = _repeated(self.low + self.high, [int(one) for one in shape])
        draws = layers.uniform_random_batch_size_like(
            like, [-1, *like.shape[1:]], min=0.0, max=1.0, seed=seed
        )
        return self._shaped(draws * (self.high - self.low) + self.low, shape)

    def entropy(self) -> Variable:
        """log(high - low)."""
        return tensor.log(self.high - self.low)

    def log_prob(self, value: Variable) -> Variable:
        """The logarithm of the density at `value`."""
        inside = tensor.cast(self.low < value, "float32") * tensor.cast(value < self.high, "float32")
        return tensor.log(inside) - tensor.log(self.high - self.low)


class Categorical:
    """One of several, by the softmax of logits[.., n]."""

    def __init__(self, logits: Any) -> None:
        self.logits = _variable(logits)

    def entropy(self) -> Variable:
        """Shape: [.., 1]."""
        chances = functional.log_softmax(self.logits)
        return tensor.sum(tensor.exp(chances) * chances, -1, keepdim=True) * -1.0

    def kl_divergence(self, other: Categorical) -> Variable:
        """The divergence of this one from `other`. Shape: [.., 1]."""
        mine, theirs = functional.log_softmax(self.logits), functional.log_softmax(other.logits)
        return tensor.sum(tensor.exp(mine) * (mine - theirs), -1, keepdim=True)


def _repeated(x: Variable, shape: list[int]) -> Variable:
    """x[..] as [*shape, ..]."""
    if not shape:
        return x
    wide = tensor.unsqueeze(x, list(range(len(shape))))
    return tensor.tile(wide, [*shape, *[1] * x.ndim])


__getattr__, __dir__ = _lazy.attach(__name__)

"""Functions of layers that draw random numbers while training. Part of fleetrun/nn/functional.py."""

from __future__ import annotations

import math

from fleetrun import tensor
from fleetrun._types import Any, Variable
from fleetrun.nn import functional


def _like(x: Variable, low: float, high: float) -> Variable:
    """Uniform in [low, high), in x's shape."""
    sizes: Any = tensor.shape(x) if min(x.shape, default=0) < 0 else None
    return tensor.uniform([sizes[i] if s < 0 else s for i, s in enumerate(x.shape)], "float32", low, high)


def gumbel_softmax(
    x: Variable, temperature: float = 1.0, hard: bool = False, axis: int = -1, name: str | None = None
) -> Variable:
    """softmax((x + noise) / temperature), the noise being Gumbel's; hard: 1 at its largest value, else 0,
    with the gradient of the soft one."""
    noise = tensor.log(tensor.scale(tensor.log(_like(x, 1e-20, 1.0)), -1.0, 1e-20))
    soft = functional.softmax(tensor.scale(x - noise, 1.0 / temperature), axis)
    if not hard:
        return soft
    first = tensor.argmax(soft, axis, keepdim=True)
    hot = tensor.put_along_axis(tensor.zeros_like(soft), first, 1.0, axis)
    apart = hot - soft
    apart.stop_gradient = True
    return soft + apart


def dropout3d(
    x: Variable, p: float = 0.5, training: bool = True, data_format: str = "NCDHW", name: str | None = None
) -> Variable:
    """Zeroes each channel of each example with probability p while training. Shape: [n, channels, deep, high,
    wide]."""
    axes = [0, 1] if data_format == "NCDHW" else [0, 4]
    return functional.dropout(x, p, axes, training)


def alpha_dropout(x: Variable, p: float = 0.5, training: bool = True, name: str | None = None) -> Variable:
    """Sets each value to the least one of selu with probability p while training, and scales all so that mean
    and variance stay."""
    if not training or p == 0:
        return x
    if p == 1:
        return tensor.scale(x, 0.0)
    least = -1.0507009873554805 * 1.6732632423543772
    scale = 1.0 / math.sqrt((1 - p) * (1 + p * least**2))
    kept = tensor.cast(tensor.greater_equal(_like(x, 0.0, 1.0), float(p)), "float32")
    return tensor.scale(x * kept + tensor.scale(kept, -least, least), scale, -scale * least * p)


def rrelu(
    x: Variable, lower: float = 1.0 / 8.0, upper: float = 1.0 / 3.0, training: bool = True,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """x where it is positive, else x times a number drawn from [lower, upper) for each value while training,
    and their mean in a test."""
    if not training:
        return functional.leaky_relu(x, (lower + upper) / 2)
    return tensor.where(tensor.greater_equal(x, 0.0), x, x * _like(x, lower, upper))

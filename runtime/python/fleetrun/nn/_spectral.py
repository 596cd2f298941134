"""A weight by its largest singular value, which a few steps of the power method estimate."""

from __future__ import annotations

import math

from fleetrun import framework, tensor
from fleetrun._error import Error
from fleetrun._param_attr import ParamAttr
from fleetrun._types import DTypeLike, Sequence, Variable
from fleetrun.nn import initializer
from fleetrun.nn._layer import Layer

__all__ = ["spectral_norm", "SpectralNorm"]

_FIRST = initializer.Normal(0.0, 1.0)


def spectral_norm(
    weight: Variable, dim: int = 0, power_iters: int = 1, eps: float = 1e-12, name: str | None = None
) -> Variable:
    """weight divided by its largest singular value, as a matrix whose rows are axis `dim`, 0 or 1. Shape:
    that of weight, whose sizes are known. The vectors that the estimate starts from are parameters that
    nothing trains."""
    layer = name or framework.unique_name("spectral_norm")
    u, v = (
        framework.make_parameter(
            layer, [size], "float32", ParamAttr(trainable=False), False, _FIRST, named=True
        )
        for size in _sizes(weight.shape, dim)
    )
    return _normalized(weight, u, v, dim, power_iters, eps)


def _sizes(shape, dim):
    """Rows and columns of a weight as a matrix."""
    sizes = [int(size) for size in shape]
    if min(sizes, default=0) < 1 or dim not in (0, 1) or dim >= len(sizes):
        raise Error(
            "config",
            f"spectral_norm(dim={dim}) of a weight of the shape {sizes}",
            "its sizes are known and above 0, and dim is 0 (of fc) or 1 (of a convolution)",
        )
    return sizes[dim], math.prod(sizes) // sizes[dim]


def _normalized(weight, u, v, dim, power_iters, eps):
    order = [dim, *(axis for axis in range(weight.ndim) if axis != dim)]
    rows, columns = _sizes(weight.shape, dim)
    turned = tensor.transpose(weight, order) if dim else weight
    matrix = tensor.reshape(turned, [rows, columns])
    fixed = tensor.assign(matrix)
    fixed.stop_gradient = True
    u, v = tensor.reshape(u, [rows, 1]), tensor.reshape(v, [columns, 1])
    for _ in range(power_iters):
        v = _unit(tensor.matmul(fixed, u, transpose_x=True), eps)
        u = _unit(tensor.matmul(fixed, v), eps)
    sigma = tensor.sum(u * tensor.matmul(fixed, v))
    normal = fixed / sigma
    # Paddle's slope, and not that of the formula: (1 - u v^T sum(normal)) / sigma, value by value.
    slope = (1.0 - tensor.matmul(u, v, transpose_y=True) * tensor.sum(normal)) / sigma
    slope.stop_gradient = normal.stop_gradient = True
    moves = matrix * slope
    still = tensor.assign(moves)
    still.stop_gradient = True
    made = tensor.reshape(normal + (moves - still), [weight.shape[axis] for axis in order])
    return tensor.transpose(made, [order.index(axis) for axis in range(weight.ndim)]) if dim else made


def _unit(x, eps):
    return x / (tensor.sqrt(tensor.sum(tensor.square(x))) + eps)


class SpectralNorm(Layer):
    """spectral_norm of weights of one shape. Its vectors are weight_u and weight_v."""

    def __init__(
        self,
        weight_shape: Sequence[int],
        dim: int = 0,
        power_iters: int = 1,
        eps: float = 1e-12,
        dtype: DTypeLike = "float32",
    ) -> None:
        super().__init__()
        self._dim, self._power_iters, self._eps = dim, power_iters, eps
        self.weight_u, self.weight_v = (
            self.create_parameter([size], attr=ParamAttr(trainable=False), default_initializer=_FIRST)
            for size in _sizes(weight_shape, dim)
        )

    def forward(self, x: Variable) -> Variable:
        return _normalized(x, self.weight_u, self.weight_v, self._dim, self._power_iters, self._eps)

"""Functions of paddle over values that are made of several operators. Part of fleetrun/tensor.py; formulas
are Paddle's."""

from __future__ import annotations

import math

from fleetrun import _dtypes as dtypes
from fleetrun import tensor
from fleetrun._error import Error
from fleetrun._types import Any, DTypeLike, Operand, Variable


def neg(x: Variable, name: str | None = None) -> Variable:
    """-x."""
    return tensor.scale(x, -1.0)


def sinh(x: Variable, name: str | None = None) -> Variable:
    """The hyperbolic sine, value by value."""
    return tensor.scale(tensor.expm1(x) - tensor.expm1(neg(x)), 0.5)


def cosh(x: Variable, name: str | None = None) -> Variable:
    """The hyperbolic cosine, value by value."""
    return tensor.scale(tensor.exp(x) + tensor.exp(neg(x)), 0.5)


def asinh(x: Variable, name: str | None = None) -> Variable:
    """The inverse of sinh, value by value."""
    # Not sign(x), which is 0 at 0, and with it the slope.
    side = tensor.scale(tensor.cast(tensor.greater_equal(x, 0.0), x.dtype), 2.0, -1.0)
    square = tensor.square(x)
    return side * tensor.log1p(side * x + square / (tensor.sqrt(square + 1.0) + 1.0))


def acosh(x: Variable, name: str | None = None) -> Variable:
    """The inverse of cosh, value by value."""
    return tensor.log(x + tensor.sqrt(tensor.square(x) - 1.0))


def atanh(x: Variable, name: str | None = None) -> Variable:
    """The inverse of tanh, value by value."""
    return tensor.scale(tensor.log1p(x) - tensor.log1p(neg(x)), 0.5)


def atan2(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The angle of the point (y, x), in (-pi, pi]."""
    # The quotient of the smaller by the larger one: it has a slope at y = 0.
    x, y = _real(x, "float64"), _real(y, "float64")
    steep = tensor.greater_than(tensor.abs(x), tensor.abs(y))
    zero = tensor.logical_and(tensor.equal(x, 0.0), tensor.equal(y, 0.0))
    below = tensor.where(zero, tensor.ones_like(y), tensor.where(steep, x, y))
    flat = tensor.atan(tensor.where(steep, y, x) / below)
    left = tensor.cast(tensor.less_than(y, 0.0), x.dtype)
    side = tensor.scale(tensor.cast(tensor.greater_equal(x, 0.0), x.dtype), 2.0, -1.0)
    return tensor.where(steep, tensor.scale(side, math.pi / 2) - flat, flat + left * side * math.pi)


def renorm(x: Variable, p: float, axis: int, max_norm: float) -> Variable:
    """x whose parts along `axis` have a p-norm of at most max_norm."""
    others = [one for one in range(x.ndim) if one != axis % x.ndim]
    total = tensor.sum(tensor.pow(tensor.abs(x), float(p)), others, keepdim=True)
    norm = tensor.pow(tensor.clip(total, min=1e-30), 1.0 / float(p))
    factor = tensor.full_like(norm, max_norm) / (norm + 1e-7)
    return x * tensor.where(tensor.greater_than(norm, max_norm), factor, tensor.ones_like(norm))


def stanh(x: Variable, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None) -> Variable:
    """scale_b * tanh(scale_a * x)."""
    return tensor.scale(tensor.tanh(tensor.scale(x, scale_a)), scale_b)


def trunc(input: Variable, name: str | None = None) -> Variable:
    """Rounded towards 0, value by value."""
    return tensor.sign(input) * tensor.floor(tensor.abs(input))


def frac(x: Variable, name: str | None = None) -> Variable:
    """x - trunc(x)."""
    return x - trunc(x)


def _real(x: Variable, whole: str = "float32") -> Variable:
    """x, whole numbers in that type."""
    return x if is_floating_point(x) else tensor.cast(x, whole)


def rad2deg(x: Variable, name: str | None = None) -> Variable:
    """x from radians to degrees."""
    return tensor.scale(_real(x), 180.0 / math.pi)


def deg2rad(x: Variable, name: str | None = None) -> Variable:
    """x from degrees to radians."""
    return tensor.scale(_real(x), math.pi / 180.0)


def logit(x: Variable, eps: float | None = None, name: str | None = None) -> Variable:
    """log(x / (1 - x)); with eps x is cut to [eps, 1 - eps]."""
    x = x if eps is None else tensor.clip(x, eps, 1.0 - eps)
    return tensor.log(x / (1.0 - x))


def logaddexp(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """log(exp(x) + exp(y)), without overflow."""
    return tensor.log1p(tensor.exp(neg(tensor.abs(x - y)))) + tensor.maximum(x, y)


def sgn(x: Variable, name: str | None = None) -> Variable:
    """sign(): the engine has no complex numbers."""
    return tensor.sign(x)


def conj(x: Variable, name: str | None = None) -> Variable:
    """x itself: the engine has no complex numbers."""
    return tensor.assign(x)


def frexp(x: Variable, name: str | None = None) -> tuple[Variable, Variable]:
    """(m, e) with x = m * 2^e and |m| in [0.5, 1), or both 0."""
    size = tensor.abs(x)
    exponent = tensor.floor(tensor.log2(size))
    exponent = tensor.where(tensor.isinf(exponent), tensor.zeros_like(exponent), exponent)
    exponent.stop_gradient = True
    part = size / tensor.pow(tensor.full_like(exponent, 2.0), exponent)
    whole = tensor.cast(tensor.greater_equal(part, 1.0), x.dtype)
    part = tensor.where(tensor.greater_equal(part, 1.0), tensor.scale(part, 0.5), part)
    return tensor.where(tensor.less_than(x, 0.0), neg(part), part), exponent + whole


def multigammaln(x: Variable, p: int, name: str | None = None) -> Variable:
    """The logarithm of the gamma function of p variables."""
    steps = tensor.to_tensor([0.5 * (k + 1 - p) for k in range(p)], x.dtype)
    each = tensor.lgamma(tensor.unsqueeze(x, -1) + steps)
    return tensor.scale(tensor.sum(each, -1), 1.0, 0.25 * p * (p - 1) * math.log(math.pi))


def hypot(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """sqrt(x² + y²)."""
    return tensor.sqrt(tensor.square(x) + tensor.square(y))


def ldexp(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """x * 2^y."""
    real = "float64" if dtypes.float64 in (x.dtype, y.dtype) else "float32"
    power = tensor.cast(y, real)
    return tensor.cast(x, real) * tensor.pow(tensor.full_like(power, 2.0), power)


def lerp(x: Variable, y: Variable, weight: Operand, name: str | None = None) -> Variable:
    """x + weight * (y - x)."""
    return x + (y - x) * weight


def heaviside(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """0 where x is below 0, y where it is 0, else 1."""
    x, y = tensor.broadcast_tensors([x, y]) if x.shape != y.shape else (x, y)
    return tensor.where(tensor.equal(x, 0.0), y, tensor.cast(tensor.greater_than(x, 0.0), x.dtype))


def fmax(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The larger of x and y; of a NaN and a number the number."""
    return tensor.where(tensor.logical_or(tensor.greater_equal(x, y), tensor.isnan(y)), x, y)


def fmin(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The smaller of x and y; of a NaN and a number the number."""
    return tensor.where(tensor.logical_or(tensor.less_equal(x, y), tensor.isnan(y)), x, y)


def nan_to_num(
    x: Variable,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
    name: str | None = None,
) -> Variable:
    """x with these numbers where it is NaN or infinite; the largest and smallest float32 when not given."""
    largest = 3.4028234663852886e38
    x = tensor.where(tensor.isnan(x), tensor.full_like(x, nan), x)
    infinite, above = tensor.isinf(x), tensor.greater_than(x, 0.0)
    high = tensor.full_like(x, largest if posinf is None else posinf)
    low = tensor.full_like(x, -largest if neginf is None else neginf)
    return tensor.where(infinite, tensor.where(above, high, low), x)


def _without_nan(x: Variable) -> Variable:
    return tensor.where(tensor.isnan(x), tensor.zeros_like(x), x)


def nansum(
    x: Variable, axis: Any = None, dtype: DTypeLike | None = None, keepdim: bool = False,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """The sum of what is not NaN."""
    made = tensor.sum(_without_nan(x), axis, keepdim=keepdim)
    return made if dtype is None else tensor.cast(made, dtype)


def nanmean(x: Variable, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
    """The mean of what is not NaN."""
    counted = tensor.cast(tensor.logical_not(tensor.isnan(x)), x.dtype)
    return nansum(x, axis, keepdim=keepdim) / tensor.sum(counted, axis, keepdim=keepdim)


def count_nonzero(x: Variable, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
    """How many values are not 0, int64."""
    true = x if x.dtype == dtypes.bool else tensor.not_equal(x, 0)
    return tensor.sum(tensor.cast(true, "int64"), axis, keepdim=keepdim)


def _shared(pick: Any, x: Variable, axis: Any, keepdim: bool) -> Variable:
    """max or min whose gradient is shared by equal values."""
    best = pick(x, axis, True) if axis is not None else pick(x)
    best.stop_gradient = True
    chosen = tensor.cast(tensor.equal(x, tensor.expand_as(best, x)), x.dtype)
    chosen.stop_gradient = True
    count = tensor.sum(chosen, axis, keepdim=True) if axis is not None else tensor.sum(chosen)
    offset = (x - tensor.expand_as(best, x)) * chosen
    mean = (tensor.sum(offset, axis, keepdim=True) if axis is not None else tensor.sum(offset)) / count
    made = best + mean
    if axis is None:
        return tensor.reshape(made, [1] * x.ndim) if keepdim else made
    return made if keepdim else tensor.squeeze(made, axis)


def amax(x: Variable, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
    """The largest value over `axis`; equal ones share its gradient."""
    return _shared(tensor.max, x, axis, keepdim)


def amin(x: Variable, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
    """The smallest value over `axis`; equal ones share its gradient."""
    return _shared(tensor.min, x, axis, keepdim)


def isclose(
    x: Variable,
    y: Variable,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
    name: str | None = None,
) -> Variable:
    """Whether |x - y| is at most atol + rtol * |y|, value by value; equal_nan: NaN is close to NaN."""
    near = tensor.less_equal(tensor.abs(x - y), tensor.scale(tensor.abs(y), rtol, atol))
    near = tensor.logical_or(near, tensor.equal(x, y))
    if equal_nan:
        near = tensor.logical_or(near, tensor.logical_and(tensor.isnan(x), tensor.isnan(y)))
    return near


def allclose(
    x: Variable,
    y: Variable,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
    name: str | None = None,
) -> Variable:
    """Whether all values are close: isclose()."""
    return tensor.all(isclose(x, y, rtol, atol, equal_nan))


def is_tensor(x: Any) -> bool:
    """Whether x is a variable of a program."""
    return isinstance(x, Variable)


def is_complex(x: Variable) -> bool:
    """False: the engine has no complex numbers."""
    return False


def is_integer(x: Variable) -> bool:
    """Whether x is int32 or int64."""
    return x.dtype in (dtypes.int32, dtypes.int64)


def is_floating_point(x: Variable) -> bool:
    """Whether x is float32 or float64."""
    return x.dtype in (dtypes.float32, dtypes.float64)


def is_empty(x: Variable, name: str | None = None) -> Variable:
    """Whether x has no values when the program runs."""
    return tensor.equal(tensor.numel(x), 0)


def addmm(
    input: Variable, x: Variable, y: Variable, beta: float = 1.0, alpha: float = 1.0, name: str | None = None
) -> Variable:
    """beta * input + alpha * x @ y."""
    return tensor.scale(input, beta) + tensor.scale(tensor.matmul(x, y), alpha)


def mv(x: Variable, vec: Variable, name: str | None = None) -> Variable:
    """The product of a matrix and a vector."""
    return tensor.matmul(x, vec)


def cross(x: Variable, y: Variable, axis: int = 9, name: str | None = None) -> Variable:
    """The cross product along an axis of size 3, the first one when it is not given."""
    axis = next((place for place, size in enumerate(x.shape) if size == 3), -1) if axis == 9 else axis
    if axis < -x.ndim or x.shape[axis] != 3:
        raise Error("config", f"paddle.cross of {x.name} {list(x.shape)}: no axis of size 3")

    def rolled(v: Variable, by: int) -> Variable:
        return tensor.roll(v, by, axis)

    return rolled(x, -1) * rolled(y, -2) - rolled(x, -2) * rolled(y, -1)


def dist(x: Variable, y: Variable, p: float = 2, name: str | None = None) -> Variable:
    """The p-norm of x - y."""
    distance = tensor.abs(x - y)
    if p == float("inf"):
        return tensor.max(distance)
    if p == float("-inf"):
        return tensor.min(distance)
    if p == 0:
        return tensor.sum(tensor.cast(tensor.not_equal(distance, 0.0), distance.dtype))
    return tensor.norm(x - y, p)


def cdist(
    x: Variable,
    y: Variable,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
    name: str | None = None,
) -> Variable:
    """The p-norm between each row of x and each of y. Shape: [.., n, k] x [.., m, k] -> [.., n, m]."""
    distance = tensor.abs(tensor.unsqueeze(x, -2) - tensor.unsqueeze(y, -3))
    if p == 0.0:
        return tensor.sum(tensor.cast(tensor.not_equal(distance, 0.0), distance.dtype), -1)
    if p == float("inf"):
        return tensor.max(distance, -1)
    return tensor.norm(distance, p, -1)

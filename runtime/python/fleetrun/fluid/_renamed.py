"""fluid.layers of Paddle 1.8 that Paddle 2 has under `paddle` with other arguments: `dim` for axis, `out` to
write to, `device` and `stop_gradient` of what is made."""

from __future__ import annotations

from fleetrun import _creation, _more_math, _more_shapes, _selection, _shapes, tensor
from fleetrun._types import Any, DTypeLike, Sequence, Variable
from fleetrun.fluid._math import _into, fill_constant, with_an_axis
from fleetrun.nn import functional

__all__ = [
    "addcmul", "addmm", "allclose", "argmax", "argmin", "clamp", "cross", "diag", "dist", "dot", "flip",
    "full", "full_like", "gather_nd", "index_select", "kron", "log1p", "log_softmax", "logsumexp",
    "meshgrid", "nonzero", "randint", "randn", "randperm", "roll", "scatter_nd_add", "sign", "trace",
    "tril", "triu",
]  # fmt: skip

Dims = int | Sequence[int] | None


def addcmul(
    input: Variable,
    tensor1: Variable,
    tensor2: Variable,
    value: float = 1.0,
    out: Any = None,
    name: Any = None,
) -> Variable:
    """input + tensor1 * tensor2 * value; into `out` when it is given."""
    return _into(input + tensor1 * tensor2 * value, out)


def addmm(
    input: Variable, x: Variable, y: Variable, alpha: float = 1.0, beta: float = 1.0, name: Any = None
) -> Variable:
    """beta * input + alpha * x @ y."""
    return _more_math.addmm(input, x, y, beta, alpha)


def allclose(
    input: Variable,
    other: Variable,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
    name: Any = None,
) -> Variable:
    """Whether all values are close to each other's."""
    return with_an_axis(_more_math.allclose(input, other, rtol, atol, equal_nan))


def argmax(x: Variable, axis: int = 0) -> Variable:
    """The place of the largest value along `axis`, the first one unless another is said."""
    return _selection.argmax(x, axis)


def argmin(x: Variable, axis: int = 0) -> Variable:
    """The place of the smallest value along `axis`, the first one unless another is said."""
    return _selection.argmin(x, axis)


def clamp(
    input: Variable, min: Any = None, max: Any = None, output: Any = None, name: Any = None
) -> Variable:
    """Values in [min, max], numbers or variables. Without `max` there is no upper bound, without `min` the
    lower one is 0, as in Paddle 1.8, whose default is the smallest float above 0."""
    if min is None and max is not None:
        min = 0.0
    return _into(tensor.clip(input, min, max), output)


def cross(input: Variable, other: Variable, dim: int | None = None) -> Variable:
    """The cross product along `dim`, the first axis of 3 for None. 0 means None, too, as in Paddle 1.8."""
    return _more_math.cross(input, other, dim or 9)


def diag(diagonal: Any) -> Variable:
    """The square matrix with these values, a variable's or an array's, on its diagonal, zeros beside it."""
    return tensor.diag(tensor.to_tensor(diagonal))


def dist(x: Variable, y: Variable, p: float = 2) -> Variable:
    """The norm of x - y. Shape: [1]."""
    return with_an_axis(tensor.dist(x, y, p))


def dot(x: Variable, y: Variable, name: Any = None) -> Variable:
    """The sum of the products along the last axis, which stays: [n, width] -> [n, 1]."""
    return tensor.sum(x * y, axis=-1, keepdim=True)


def flip(input: Variable, dims: int | Sequence[int], name: Any = None) -> Variable:
    """The values in reversed order along `dims`."""
    return _selection.flip(input, dims)


def _made(value: Variable, out: Any, stop_gradient: bool) -> Variable:
    value = _into(value, out)
    value.stop_gradient = stop_gradient
    return value


def full(
    shape: Any,
    fill_value: Any,
    out: Any = None,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    stop_gradient: bool = True,
    name: Any = None,
) -> Variable:
    """A variable of one value, a number or a variable's; float32 unless `dtype` says another."""
    return _made(fill_constant(shape, dtype or "float32", fill_value), out, stop_gradient)


def full_like(
    input: Variable,
    fill_value: Any,
    out: Any = None,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    stop_gradient: bool = True,
    name: Any = None,
) -> Variable:
    """One value in the shape of input."""
    return _made(_creation.full_like(input, fill_value, dtype), out, stop_gradient)


def gather_nd(input: Variable, index: Variable, name: Any = None) -> Variable:
    """The parts of input at index[.., k]: one place for each of its first k axes."""
    return _selection.gather_nd(input, index)


def index_select(input: Variable, index: Variable, dim: int = 0) -> Variable:
    """The places `index` of input along `dim`."""
    return _selection.index_select(input, index, dim)


def kron(x: Variable, y: Variable, out: Any = None, name: Any = None) -> Variable:
    """The Kronecker product; into `out` when it is given."""
    return _into(_more_shapes.kron(x, y), out)


def log1p(x: Variable, out: Any = None, name: Any = None) -> Variable:
    """log(1 + x); into `out` when it is given."""
    return _into(tensor.log1p(x), out)


def log_softmax(
    input: Variable, axis: int | None = None, dtype: DTypeLike | None = None, name: Any = None
) -> Variable:
    """log(softmax(input)) along `axis`, the last one for None."""
    return functional.log_softmax(input, -1 if axis is None else axis, dtype)


def logsumexp(
    x: Variable, dim: Dims = None, keepdim: bool = False, out: Any = None, name: Any = None
) -> Variable:
    """log(sum(exp(x))) along `dim`; into `out` when it is given."""
    return _into(with_an_axis(tensor.logsumexp(x, dim, keepdim)), out)


def meshgrid(input: Sequence[Variable], name: Any = None) -> list[Variable]:
    """The coordinates of the grid over these axes."""
    return _creation.meshgrid(list(input))


def nonzero(input: Variable, as_tuple: bool = False) -> Any:
    """The places of what is not zero."""
    return _selection.nonzero(input, as_tuple)


def randint(
    low: int,
    high: int | None = None,
    shape: Any = None,
    out: Any = None,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    stop_gradient: bool = False,
    seed: int = 0,
    name: Any = None,
) -> Variable:
    """Whole numbers in [low, high), or in [0, low): new ones in every run."""
    first, last = (0, low) if high is None else (low, high)
    made = _creation._random("integer", [1] if shape is None else shape, first, last, dtype or "int64", seed)
    return _made(made, out, stop_gradient)


def randn(
    shape: Any,
    out: Any = None,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    stop_gradient: bool = True,
    name: Any = None,
) -> Variable:
    """Normal with mean 0 and deviation 1: new values in every run."""
    return _made(_creation.randn(shape, dtype), out, stop_gradient)


def randperm(
    n: int,
    out: Any = None,
    dtype: DTypeLike = "int64",
    device: str | None = None,
    stop_gradient: bool = True,
    seed: int = 0,
) -> Variable:
    """0 to n - 1 in random order: a new one in every run, the same one with a seed."""
    return _made(_creation.permutation(n, dtype, seed), out, stop_gradient)


def roll(input: Variable, shifts: int | Sequence[int], dims: Dims = None) -> Variable:
    """The values moved by `shifts` along `dims`."""
    return _selection.roll(input, shifts, dims)


def scatter_nd_add(ref: Variable, index: Variable, updates: Variable, name: Any = None) -> Variable:
    """ref with `updates` added at index[.., k]: one place for each of its first k axes."""
    return _more_shapes.scatter_nd_add(ref, index, updates)


def sign(x: Any) -> Variable:
    """-1, 0 or 1 for each value of a variable or an array."""
    return tensor.sign(tensor.to_tensor(x))


def trace(
    input: Variable, offset: int = 0, dim1: int = 0, dim2: int = 1, out: Any = None, name: Any = None
) -> Variable:
    """The sum of a diagonal; into `out` when it is given."""
    return _into(with_an_axis(_more_shapes.trace(input, offset, dim1, dim2)), out)


def tril(input: Variable, diagonal: int = 0, name: Any = None) -> Variable:
    """The lower triangle of matrices, zeros above it."""
    return _shapes.tril(input, diagonal)


def triu(input: Variable, diagonal: int = 0, name: Any = None) -> Variable:
    """The upper triangle of matrices, zeros below it."""
    return _shapes.triu(input, diagonal)

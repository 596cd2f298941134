"""What a variable has as a method, and its operators: the functions of fleetrun/tensor.py by name."""

from __future__ import annotations

from typing import Any

from fleetrun import _dtypes as dtypes
from fleetrun import _graph, _indexing, _mode, tensor
from fleetrun._arguments import warn_once
from fleetrun._operators import Operators
from fleetrun._variable import Variable

# Those that are not called on a variable, in Paddle as here.
_FUNCTIONS_ONLY = {
    "arange", "array_length", "array_read", "array_write", "assign", "create_array", "create_global_var",
    "create_parameter", "create_tensor", "einsum", "empty", "empty_like", "eye", "fill_constant", "full",
    "full_like", "linspace", "logspace", "meshgrid", "normal", "ones", "ones_like", "rand", "randint",
    "randint_like", "randn", "randperm", "shape", "standard_normal", "to_tensor", "tril_indices",
    "triu_indices", "uniform", "zeros", "zeros_like",
}  # fmt: skip


def _agreed(function: Any, x: Variable, other: Any) -> tuple[Variable, Any]:
    """Both as an operator computes with them: the second in the type of the first, but float32 and float64
    are added, subtracted and multiplied as float64, and whole numbers divided as float32. No Paddle that has
    paddle.fluid.layers knows the float64 of both: to scripts that use them the first type is the result's."""
    if not isinstance(other, Variable):
        return x, other
    is_wide = function in _WIDENING and {x.dtype, other.dtype} == {dtypes.float32, dtypes.float64}
    if is_wide and not _mode.is_of_1x():
        return x.cast("float64"), other.cast("float64")
    other = other if other.dtype == x.dtype else other.cast(x.dtype)
    other = _lined_up(x, other)
    if function is tensor.divide and x.dtype in (dtypes.int32, dtypes.int64):
        return x.cast("float32"), other.cast("float32")
    return x, other


def _lined_up(x: Variable, other: Variable) -> Variable:
    """`other` as Paddle 1.x takes it, whose operators line up the first axes where `other` has fewer and the
    first of them is the batch. Paddle 2 lines up the last ones, and asks for enable_static()."""
    fewer = x.ndim - other.ndim
    if _mode.asked_for_static or fewer < 1 or other.ndim == 0 or (x.shape[0], other.shape[0]) != (-1, -1):
        return other
    if not all(b in (a, 1) or -1 in (a, b) for a, b in zip(x.shape, other.shape)):
        return other
    warn_once(
        "first axes",
        f"{x.name} {list(x.shape)} and {other.name} {list(other.shape)}: their first axes are lined up, as "
        "in Paddle 1.x, for the script does not call paddle.enable_static(), as those for Paddle 2 do",
    )
    return tensor.reshape(other, [0] * other.ndim + [1] * fewer)


_WIDENING = (tensor.add, tensor.subtract, tensor.multiply)


def _operator(function: Any) -> Any:
    def method(x: Variable, other: Any, name: str | None = None) -> Variable:
        return function(*_agreed(function, x, other))

    method.__doc__ = function.__doc__
    return method


def _equal(x: Variable, other: Any) -> Any:
    """Compares values when `other` is a variable or a number; a variable is not equal to any other thing."""
    return _operator(tensor.equal)(x, other) if isinstance(other, (Variable, int, float)) else False


def _not_equal(x: Variable, other: Any) -> Any:
    return _operator(tensor.not_equal)(x, other) if isinstance(other, (Variable, int, float)) else True


def _power_of(x: Variable, base: float) -> Variable:
    """base to the power of x, float32 where the base is a fraction."""
    x = x.cast("float32") if base != int(base) and x.dtype != dtypes.float64 else x
    return tensor.pow(tensor.full_like(x, base), x)


def _sigmoid(x: Variable, name: str | None = None) -> Variable:
    """1 / (1 + exp(-x))."""
    made: Variable = _graph.append("sigmoid", "sigmoid", [x])
    return made


METHODS = {
    **{name: getattr(tensor, name) for name in tensor.__all__ if name not in _FUNCTIONS_ONLY},
    "assign": tensor.assign,
    "astype": tensor.cast,
    "sigmoid": _sigmoid,
    "sigmoid_": _sigmoid,
    "__add__": _operator(tensor.add),
    "__radd__": tensor.add,
    "__sub__": _operator(tensor.subtract),
    "__rsub__": lambda x, other: tensor.subtract(other, x),
    "__mul__": _operator(tensor.multiply),
    "__rmul__": tensor.multiply,
    "__truediv__": _operator(tensor.divide),
    "__rtruediv__": lambda x, other: tensor.divide(other, x),
    "__floordiv__": _operator(tensor.floor_divide),
    "__mod__": _operator(tensor.mod),
    "__pow__": _operator(tensor.pow),
    "__rpow__": _power_of,
    "__matmul__": tensor.matmul,
    "__lt__": _operator(tensor.less_than),
    "__le__": _operator(tensor.less_equal),
    "__gt__": _operator(tensor.greater_than),
    "__ge__": _operator(tensor.greater_equal),
    "__eq__": _equal,
    "__ne__": _not_equal,
    "__and__": tensor.bitwise_and,
    "__or__": tensor.bitwise_or,
    "__xor__": tensor.bitwise_xor,
    "__invert__": tensor.bitwise_not,
    "__abs__": tensor.abs,
    "__neg__": lambda x: tensor.scale(x, -1.0),
    "__getitem__": _indexing.index,
}
for _name, _function in METHODS.items():
    setattr(Operators, _name, _function)

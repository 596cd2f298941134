"""What a variable has as a method, and its operators: the functions of fleetrun/tensor.py by name."""

from typing import Any

from fleetrun import _indexing, tensor
from fleetrun._operators import Operators
from fleetrun._variable import Variable

# Those that are not called on a variable, in Paddle as here.
_FUNCTIONS_ONLY = {
    "add_n", "arange", "assign", "broadcast_shape", "combinations", "concat", "create_global_var",
    "create_parameter", "create_tensor", "diag", "einsum", "empty", "empty_like", "eye", "fill_constant",
    "full", "full_like", "linspace", "logspace", "meshgrid", "normal", "ones", "ones_like", "outer", "rand",
    "randint", "randint_like", "randn", "randperm", "rank", "shape", "stack", "standard_normal",
    "to_tensor", "tril_indices", "triu_indices", "uniform", "zeros", "zeros_like",
}  # fmt: skip


def _equal(x: Variable, other: Any) -> Any:
    """Compares values when `other` is a variable or a number; a variable is not equal to any other thing."""
    return tensor.equal(x, other) if isinstance(other, (Variable, int, float)) else False


def _not_equal(x: Variable, other: Any) -> Any:
    return tensor.not_equal(x, other) if isinstance(other, (Variable, int, float)) else True


METHODS = {
    **{name: getattr(tensor, name) for name in tensor.__all__ if name not in _FUNCTIONS_ONLY},
    "assign": tensor.assign,
    "astype": tensor.cast,
    "__add__": tensor.add,
    "__radd__": tensor.add,
    "__sub__": tensor.subtract,
    "__rsub__": lambda x, other: tensor.subtract(other, x),
    "__mul__": tensor.multiply,
    "__rmul__": tensor.multiply,
    "__truediv__": tensor.divide,
    "__rtruediv__": lambda x, other: tensor.divide(other, x),
    "__floordiv__": tensor.floor_divide,
    "__mod__": tensor.mod,
    "__pow__": tensor.pow,
    "__rpow__": lambda x, base: tensor.pow(tensor.full_like(x, base), x),
    "__matmul__": tensor.matmul,
    "__lt__": tensor.less_than,
    "__le__": tensor.less_equal,
    "__gt__": tensor.greater_than,
    "__ge__": tensor.greater_equal,
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

"""Inputs that are fed other sizes, axes or another type than they are declared.

In Paddle 1.x what is declared is what a layer may count on and no promise about what is fed; in every Paddle
the last axes of what is fed may be left out. There a program computes with the shape and the type of what is
fed. Here it is inferred once more for that.
"""

from __future__ import annotations

import numpy

from fleetrun import _lazy
from fleetrun._arguments import warn_once
from fleetrun._error import Error
from fleetrun._graph import SideTable
from fleetrun._types import Any, Callable, Mapping, Program, Variable

__all__ = ["declare", "fit", "with_axes"]

# The names of inputs whose sizes are no promise.
_LOOSE: SideTable[set[str]] = SideTable("loose_inputs", set, copied=set)
# The shapes that inputs were declared with which have been fed fewer axes, by name.
_DECLARED: SideTable[dict[str, list[int]]] = SideTable("declared_shapes", dict, copied=dict)
# Answers of `_is_of_rows`, which would look through all operators in every step: by name, each with
# the program that it is of.
_OF_ROWS: SideTable[dict[str, tuple[Any, ...]]] = SideTable("inputs_of_rows", dict)
# Types that Paddle 1.x computes with, whatever is declared.
_NUMBERS = ("float32", "float64", "int32", "int64")
# Operators that say which axes they mean by numbers of the script or by none, as Paddle's do, so that they
# mean the same of a value with fewer or more.
_ANY_AXES = {
    "abs", "acos", "asin", "assign", "atan", "cast", "ceil", "clip", "cos", "dropout", "elementwise_add",
    "elementwise_div", "elementwise_floordiv", "elementwise_max", "elementwise_min", "elementwise_mod",
    "elementwise_mul", "elementwise_pow", "elementwise_sub", "elu", "embedding", "equal", "erf", "exp",
    "expm1", "floor", "gelu", "greater_equal", "greater_than", "hard_shrink", "hard_sigmoid", "hard_swish",
    "isfinite", "isinf", "isnan", "leaky_relu", "less_equal", "less_than", "log", "log10", "log1p", "log2",
    "logical_and", "logical_not", "logical_or", "logical_xor", "logsigmoid", "matmul", "mish", "not_equal",
    "pow", "reciprocal", "relu", "relu6", "round", "rsqrt", "scale", "selu", "shape", "sigmoid", "sign",
    "silu", "sin", "slice", "softplus", "softsign", "sparse_embedding", "sqrt", "square",
    "square_error_cost", "squeeze", "tan", "tanh", "where",
}  # fmt: skip

_REDUCTIONS = ("all", "any", "max", "mean", "min", "prod", "sum")


def declare(variable: Variable) -> Variable:
    """Lets other sizes than the declared be fed to an input. Returns it."""
    _LOOSE.of(variable.program).add(variable.name)
    return variable


def with_axes(variable: Variable, value: Any) -> Any:
    """`value`, an array, as the variable is declared where only a last axis of one is left out, as Paddle
    takes it, where one number is fed as a scalar, which Paddle 1.x gives an axis, and where more axes are fed
    than a fully connected layer needs, which takes the first for rows. Else it stays as it is, and `fit` is
    asked for that."""
    if not value.ndim and variable.ndim and all(size in (-1, 1) for size in variable.shape):
        return value.reshape([1] * variable.ndim)
    if 0 < value.ndim < variable.ndim:
        if value.ndim + 1 == variable.ndim and variable.shape[-1] == 1:
            return value[..., numpy.newaxis]
        _DECLARED.of(variable.program).setdefault(variable.name, list(variable.shape))
    if value.ndim > variable.ndim == 2 and value.size and _is_of_rows(variable):
        rows = value.reshape([value.shape[0], -1])
        if variable.shape[1] in (-1, rows.shape[1]):
            return rows
    return value


def _is_of_rows(variable: Variable) -> bool:
    """Whether only the products of fully connected layers read it, and something does."""
    program, known = variable.program, _OF_ROWS.of(variable.program)
    age = (program.native, program.native.operator_count())
    if known.get(variable.name, ())[:2] != age:
        readers = [op for op in program.ops if variable.name in op.inputs]
        are_products = all(op.type == "linear" and op.inputs[0] == variable.name for op in readers)
        known[variable.name] = (*age, bool(readers) and are_products)
    return known[variable.name][2]


def fit(program: Program, feed: dict[str, Any]) -> bool:
    """Gives the inputs that are fed another shape or type than they are declared with what is fed; sizes are
    not known any more then.

    Returns whether the program is another one then. One that cannot do without what is declared stays as it
    is. What has to be rounded for it is replaced in `feed`.
    """
    loose, declared = _LOOSE.of(program), _DECLARED.of(program)
    found = {}
    types = {}
    for name in {*loose, *declared}.intersection(feed):
        variable = program.var(name)
        now = list(variable.shape)
        wanted, given = declared.get(name, now), list(_shape(feed[name]))
        other = [a not in (-1, b) for a, b in zip(wanted, given)]
        if name in loose and (kind := _type(feed[name])) != variable.dtype.name and kind in _NUMBERS:
            types[name] = kind
        if len(now) == len(given):
            fits = name in loose and any(other)
        else:
            fits = name in loose or (not any(other) and len(given) <= len(wanted))
        if fits:
            found[name] = (wanted, given)
    if not found and not types:
        return False
    # First with the sizes that are fed, for one that is not known is accepted everywhere.
    fed = {name: _merged(*sizes, lambda a, b: a if a == -1 else b) for name, sizes in found.items()}
    free = {name: _merged(*sizes, lambda a, b: a if a == b else -1) for name, sizes in found.items()}
    native = _inferred(program, fed, types) and _inferred(program, free, types)
    if native is None:
        return _converted(program, feed, types) and fit(program, feed)
    for name, shape in free.items():
        warn_once(
            f"sizes of {name}",
            f"{name} is declared {found[name][0]} and fed another shape: the program computes with {shape}, "
            "as in Paddle",
        )
    for name, kind in types.items():
        warn_once(
            f"type of {name}",
            f"{name} is declared {program.var(name).dtype.name} and fed {kind}: the program computes with "
            f"{kind}, as in Paddle 1.x",
        )
    program.native = native
    return True


def _converted(program: Program, feed: dict[str, Any], types: dict[str, str]) -> bool:
    """Rounds float64 that is fed to float32 where the program has no float64. Returns whether it did."""
    names = [
        name
        for name, kind in types.items()
        if kind == "float64"
        and program.var(name).dtype.name == "float32"
        and isinstance(feed[name], numpy.ndarray)
    ]
    for name in names:
        warn_once(
            f"rounding of {name}", f"{name} is declared float32 and fed float64: it is rounded to float32"
        )
        feed[name] = feed[name].astype("float32")
    return bool(names)


def _merged(wanted: list[int], given: list[int], choose: Callable[[int, int], int]) -> list[int]:
    """A size for each axis that is fed; the declared ones end where fewer are declared."""
    return [choose(a, b) for a, b in zip(wanted, given)] + [-1] * (len(given) - len(wanted))


def _inferred(program: Program, shapes: Mapping[str, list[int]], types: Mapping[str, str]) -> Any:
    """The native program with inputs of these shapes and types, None where an operator cannot take them."""
    native = program.native.copy()
    try:
        for name, shape in shapes.items():
            native.set_shape(name, shape)
        for name, kind in types.items():
            native.set_type(name, kind)
        native.infer_again()
    except Error:
        return None
    return native if _means_the_same(program, native) else None


def _means_the_same(program: Program, native: Any) -> bool:
    """Whether each operator whose inputs have another number of axes now means the same by its own."""
    before = program.native
    more = {
        name: len(native.variable(name).shape) - len(before.variable(name).shape)
        for name in before.variable_names()
    }
    changed = {name for name, count in more.items() if count}
    # The elementwise layers put axes behind a value to say where it belongs, by the axes of the other one.
    placed = {
        op.outputs[0]
        for op in program.ops
        if op.type == "unsqueeze" and all(axis < 0 for axis in _sizes(op, "axes"))
    }

    def means_the_same(op: Any) -> bool:
        if op.type.startswith("elementwise") and not placed.isdisjoint(op.inputs):
            return len({more[name] for name in op.inputs}) == 1
        if op.type in _REDUCTIONS:
            return not op.attr("axis")
        if op.type == "reshape":
            return op.attr("shape") == [-1]
        return op.type in _ANY_AXES or op.outputs[0] in placed

    return all(changed.isdisjoint(op.inputs) or means_the_same(op) for op in program.ops)


def _sizes(op: Any, name: str) -> list[int]:
    return op.attr(name)


def _shape(value: Any) -> Any:
    return value.shape() if callable(value.shape) else value.shape


def _type(value: Any) -> str:
    return str(getattr(value, "array", value).dtype)


__getattr__, __dir__ = _lazy.attach(__name__)

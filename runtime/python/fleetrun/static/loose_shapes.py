"""Inputs that are fed other sizes, or fewer axes, than they are declared.

In Paddle 1.x declared sizes are what a layer may count on and no promise about what is fed; in every Paddle
the last axes of what is fed may be left out. There a program computes with the shape of what is fed. Here it
is inferred once more for that.
"""

from __future__ import annotations

import numpy

from fleetrun import _lazy
from fleetrun._arguments import warn_once
from fleetrun._error import Error
from fleetrun._graph import SideTable
from fleetrun._types import Any, Mapping, Program, Variable

__all__ = ["declare", "fit", "with_axes"]

# The names of inputs whose sizes are no promise.
_LOOSE: SideTable[set[str]] = SideTable("loose_inputs", set, copied=set)
# The shapes that inputs were declared with which have been fed fewer axes, by name.
_DECLARED: SideTable[dict[str, list[int]]] = SideTable("declared_shapes", dict, copied=dict)
# Operators that say which axes they mean by numbers of the script or by none, as Paddle's do, so that they
# mean the same of a value with fewer.
_ANY_AXES = (
    "abs cast clip elementwise_add elementwise_div elementwise_max elementwise_min elementwise_mod "
    "elementwise_mul elementwise_pow elementwise_sub elu embedding equal exp floor gelu greater_equal "
    "greater_than leaky_relu less_equal less_than log logical_and logical_not logical_or matmul not_equal "
    "pow relu relu6 scale selu shape sigmoid sign slice softplus softsign sparse_embedding sqrt square "
    "squeeze tanh where"
)


def declare(variable: Variable) -> Variable:
    """Lets other sizes than the declared be fed to an input. Returns it."""
    _LOOSE.of(variable.program).add(variable.name)
    return variable


def with_axes(variable: Variable, value: Any) -> Any:
    """`value`, an array, as the variable is declared where only a last axis of one is left out, as Paddle
    takes it, and where one number is fed as a scalar, which Paddle 1.x gives an axis. Where other axes are
    left out it stays as it is, and `fit` is asked for that."""
    if not value.ndim and variable.ndim and all(size in (-1, 1) for size in variable.shape):
        return value.reshape([1] * variable.ndim)
    if 0 < value.ndim < variable.ndim:
        if value.ndim + 1 == variable.ndim and variable.shape[-1] == 1:
            return value[..., numpy.newaxis]
        _DECLARED.of(variable.program).setdefault(variable.name, list(variable.shape))
    return value


def fit(program: Program, feed: Mapping[str, Any]) -> bool:
    """Gives the inputs that are fed other sizes or fewer axes than they are declared with what is fed; sizes
    are not known any more then.

    Returns whether the program is another one then. One that cannot do without these sizes stays as it is.
    """
    loose, declared = _LOOSE.of(program), _DECLARED.of(program)
    found = {}
    for name in {*loose, *declared}.intersection(feed):
        now = list(program.var(name).shape)
        wanted, given = declared.get(name, now), list(_shape(feed[name]))
        other = [a not in (-1, b) for a, b in zip(wanted, given)]
        fits = name in loose or not any(other)
        if fits and (any(other) if len(now) == len(given) else len(given) <= len(wanted)):
            found[name] = (wanted, given)
    if not found:
        return False
    # First with the sizes that are fed, for one that is not known is accepted everywhere.
    fed = {name: [a if a == -1 else b for a, b in zip(*sizes)] for name, sizes in found.items()}
    free = {name: [a if a == b else -1 for a, b in zip(*sizes)] for name, sizes in found.items()}
    native = _inferred(program, fed) and _inferred(program, free)
    if native is None:
        return False
    for name, shape in free.items():
        warn_once(
            f"sizes of {name}",
            f"{name} is declared {found[name][0]} and fed another shape: the program computes with {shape}, "
            "as in Paddle",
        )
    program.native = native
    return True


def _inferred(program: Program, shapes: Mapping[str, list[int]]) -> Any:
    """The native program with inputs of these shapes, None where an operator cannot take them."""
    native = program.native.copy()
    try:
        for name, shape in shapes.items():
            native.set_shape(name, shape)
        native.infer_again()
    except Error:
        return None
    return native if _means_the_same(program, native) else None


def _means_the_same(program: Program, native: Any) -> bool:
    """Whether each operator whose inputs have another number of axes now means the same by its own."""
    before = program.native
    changed = {
        name
        for name in before.variable_names()
        if len(before.variable(name).shape) != len(native.variable(name).shape)
    }
    any_axes = _ANY_AXES.split()
    return all(op.type in any_axes or changed.isdisjoint(op.inputs) for op in program.ops)


def _shape(value: Any) -> Any:
    return value.shape() if callable(value.shape) else value.shape


__getattr__, __dir__ = _lazy.attach(__name__)

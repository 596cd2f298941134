"""Inputs of Paddle 1.x, whose declared sizes are what a layer may count on and no promise about what is fed.

There a program computes with the sizes of what is fed. Here it is inferred once more for them.
"""

from __future__ import annotations

from fleetrun import _lazy
from fleetrun._arguments import warn_once
from fleetrun._error import Error
from fleetrun._graph import SideTable
from fleetrun._types import Any, Mapping, Program, Variable

__all__ = ["declare", "fit"]

# The names of these inputs.
_LOOSE: SideTable[set[str]] = SideTable("loose_inputs", set, copied=set)


def declare(variable: Variable) -> Variable:
    """Lets other sizes than the declared be fed to an input. Returns it."""
    _LOOSE.of(variable.program).add(variable.name)
    return variable


def fit(program: Program, feed: Mapping[str, Any]) -> bool:
    """Gives the inputs that are fed other sizes than they are declared with sizes that are not known.

    Returns whether the program is another one then. One that cannot do without these sizes stays as it is.
    """
    found = {}
    for name in _LOOSE.of(program).intersection(feed):
        wanted, given = list(program.var(name).shape), list(_shape(feed[name]))
        if len(wanted) == len(given) and any(size not in (-1, fed) for size, fed in zip(wanted, given)):
            found[name] = (wanted, given)
    if not found:
        return False
    # First with the sizes that are fed, for one that is not known is accepted everywhere.
    fed = {name: [a if a == -1 else b for a, b in zip(*sizes)] for name, sizes in found.items()}
    loose = {name: [a if a == b else -1 for a, b in zip(*sizes)] for name, sizes in found.items()}
    native = _inferred(program, fed) and _inferred(program, loose)
    if native is None:
        return False
    for name, shape in loose.items():
        warn_once(
            f"sizes of {name}",
            f"{name} is declared {list(program.var(name).shape)} and fed other sizes: the program computes "
            f"with {shape}, as in Paddle 1.x",
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
    return native


def _shape(value: Any) -> Any:
    return value.shape() if callable(value.shape) else value.shape


__getattr__, __dir__ = _lazy.attach(__name__)

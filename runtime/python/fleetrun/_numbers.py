"""Numbers of an operator of which some are variables: the sizes of a reshape whose batch is
paddle.shape(x)[0]. The engine's side is runtime/engine/operators/numbers.h."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from fleetrun._error import Error
from fleetrun._variable import Variable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
else:
    ArrayLike = Any

# Sizes of which some may be known only when the program runs, and what arithmetic takes beside a variable.
Shape: TypeAlias = int | Variable | Sequence[int | Variable]
Operand: TypeAlias = Variable | ArrayLike


def listed(values: Any) -> list[Any]:
    """Numbers as a list: of a list, of one number or variable, of a variable that holds them all."""
    if isinstance(values, Variable):
        if values.ndim == 0 or values.shape == (1,):
            return [values]
        return [values[place] for place in range(len(values))]
    if isinstance(values, (list, tuple)):
        return list(values)
    return [int(value) for value in values] if hasattr(values, "__iter__") else [values]


def has_variable(*lists: Sequence[Any]) -> bool:
    """Whether one of the numbers is a variable."""
    return any(isinstance(value, Variable) for values in lists for value in values)


def resolve(
    function: str, inputs: Sequence[Variable], **lists: Sequence[Any]
) -> tuple[list[Variable], dict[str, Any]]:
    """(inputs, attributes) of an operator that takes `inputs` first and has these lists of numbers.

    Throws: Error(config) for what is neither an integer nor a variable.
    """
    inputs, attributes = list(inputs), {}
    for name, values in lists.items():
        numbers, places = [], []
        for value in values:
            if isinstance(value, Variable):
                places.append(len(inputs))
                inputs.append(value)
                numbers.append(-1)
                continue
            try:
                numbers.append(int(value))
            except (TypeError, ValueError):
                raise Error("config", f"{function}: {value!r} is neither a number nor a variable") from None
            places.append(-1)
        attributes[name] = numbers
        if any(place >= 0 for place in places):
            attributes[name + "_from"] = places
    return inputs, attributes


def axes(axis: Any) -> list[int]:
    """An axis, several, or None for all of them as a list. Throws: Error(config) for a variable."""
    if axis is None:
        return []
    if isinstance(axis, Variable):
        raise Error("config", f"the axis {axis.name} is a variable", "give axes as numbers")
    return [int(one) for one in listed(axis)]

"""One operator of Paddle, as what computes it here is given it."""

from __future__ import annotations

from fleetrun import _lazy
from fleetrun._error import Error
from fleetrun._types import Any, Callable, Mapping, Sequence, Variable
from fleetrun.fluid._program_desc import DTYPES

__all__ = ["Function", "of_one", "Operator", "sizes"]


class Operator:
    """One of Paddle's operators: variables by slot, and attributes."""

    def __init__(self, type: str, inputs: Mapping[str, Sequence[Variable]], attrs: Mapping[str, Any]) -> None:
        self.type, self.inputs, self.attrs = type, inputs, attrs

    def __getitem__(self, slot: str) -> Variable:
        variable = self.get(slot)
        if variable is None:
            raise Error("config", f"operator {self.type} has nothing in its slot {slot}")
        return variable

    def get(self, slot: str) -> Variable | None:
        """The variable of a slot that may be empty."""
        return next(iter(self.inputs.get(slot) or ()), None)

    def at(self, name: str, default: Any = None) -> Any:
        """An attribute."""
        value = self.attrs.get(name)
        return default if value is None else value

    def dtype(self, name: str, default: str = "float32") -> Any:
        """An attribute that is a type, by its number in files."""
        value = self.at(name, -1)
        return DTYPES.get(value, default) if isinstance(value, int) else value

    def only(self, **wanted: Any) -> None:
        """Throws: Error(config) for an attribute of another value."""
        for name, value in wanted.items():
            if self.at(name, value) != value:
                raise Error(
                    "config",
                    f"operator {self.type} with {name} = {self.at(name)}",
                    f"only {value} is known here",
                )

    def without(self, *slots: str) -> Operator:
        """Itself. Throws: Error(config) for an input in one of these slots."""
        for slot in slots:
            if self.get(slot) is not None:
                raise Error("config", f"operator {self.type} with an input {slot}", "give it as an attribute")
        return self


Function = Callable[[Operator], Any]


def of_one(
    function: Callable[..., Variable], without: Sequence[str] = (), **attributes: tuple[str, Any]
) -> Function:
    """Of X, and attributes: {argument: (name, default)}; without: slots that have to be empty."""
    return lambda op: function(
        op.without(*without)["X"],
        **{argument: op.at(name, default) for argument, (name, default) in attributes.items()},
    )


def sizes(op: Operator, name: str, tensors: Sequence[str] = (), whole: Sequence[str] = ()) -> Any:
    """Sizes of an attribute, of several variables, or of one."""
    for slot in tensors:
        if op.inputs.get(slot):
            return list(op.inputs[slot])
    given = next((found for slot in whole if (found := op.get(slot)) is not None), None)
    return op.at(name) if given is None else given


__getattr__, __dir__ = _lazy.attach(__name__)

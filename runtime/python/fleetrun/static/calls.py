"""py_func: a function of the script that the program calls when it runs."""

from __future__ import annotations

import numpy

from fleetrun import _native, framework
from fleetrun._arguments import as_list
from fleetrun._error import Error
from fleetrun._types import Any, Callable, Sequence, Variable
from fleetrun.lod_tensor import LoDTensor

__all__ = ["py_func"]


def py_func(
    func: Callable[..., Any],
    x: Variable | Sequence[Variable] | None,
    out: Variable | Sequence[Variable] | None,
    backward_func: Callable[..., Any] | None = None,
    skip_vars_in_backward_input: Variable | Sequence[Variable] | None = None,
) -> Any:
    """`out`, filled with what func(*x) gives: an array, or a list of them. out: variables that the script has
    made (Program.create_var) of the right type.

    backward_func(*x, *out, *gradients of out), without those that skip_vars_in_backward_input names, gives
    the gradients of x; without it the outputs are constants. Both get LoDTensors, which numpy.array() takes.
    The program works in this process alone. Throws: Error(config) for a variable to skip that is none of x
    and out."""
    append_call(func, x, out, backward_func, skip_vars_in_backward_input)
    return out


def append_call(
    func: Any, x: Any, out: Any, backward_func: Any = None, skipped: Any = None, **attributes: Any
) -> None:
    """py_func, as an operator with these attributes beside its own."""
    inputs, outputs, skipped = (_variables(one) for one in (x, out, skipped))
    for variable in skipped if backward_func is not None else []:
        if all(variable is not one for one in (*inputs, *outputs)):
            raise Error(
                "config", f"py_func: {variable.name} is to be skipped, and neither an input nor an output"
            )
    attributes["function"] = _kept(func, outputs)
    if backward_func is not None:
        attributes["backward"] = _kept(backward_func, inputs)
    if backward_func is not None and skipped:
        attributes["skipped"] = [one.name for one in skipped]
    framework.append("py_func", "call", inputs, attributes, [one.name for one in outputs])
    for one in outputs:
        one.stop_gradient = backward_func is None or one.stop_gradient


def _variables(given):
    return [] if given is None else as_list(given)


def _kept(function, results):
    """The number of a function that takes LoDTensors, and gives arrays of the types of `results`."""
    name, types = getattr(function, "__name__", repr(function)), [one.dtype.name for one in results]

    def call(values):
        given = [None if one is None else LoDTensor(numpy.asarray(one), one.offsets) for one in values]
        made = as_list(function(*given))
        if types and len(made) != len(types):
            raise Error("config", f"py_func: {name} gave {len(made)} values, and {len(types)} are needed")
        return [None if one is None else _typed(one, of) for one, of in zip(made, types)]

    return _native.keep_function(call)


def _typed(value, dtype):
    offsets = value.lod_offsets if isinstance(value, LoDTensor) else []
    array = numpy.ascontiguousarray(numpy.asarray(value, dtype=dtype))
    return LoDTensor(array.reshape(numpy.shape(value)), offsets)

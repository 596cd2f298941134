"""Inputs and kept values of a program."""

from __future__ import annotations

import operator

from fleetrun import _dtypes as dtypes
from fleetrun import framework
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun._types import Any, DTypeLike, Sequence, Variable
from fleetrun.static import groups

__all__ = ["create_global_var", "data", "InputSpec"]


def data(
    name: str, shape: Sequence[int | None], dtype: DTypeLike | None = None, lod_level: int = 0
) -> Variable:
    """An input that is fed by name.

    shape: None or -1 for a size known only when the program runs. dtype: float32 when not given.
    lod_level: 1 for a slot with any number of values per example, 2 for one with any number of sequences per
    example. Throws: Error(config).
    """
    program = framework.default_main_program()
    if not isinstance(name, str):
        raise Error("config", f"paddle.static.data(name={name!r}) is not a name", "give it a text")
    sizes, levels = _sizes(shape), int(lod_level)
    if levels > 2:
        raise Error("config", f"paddle.static.data({name!r}, lod_level={lod_level})", "it is 2 at most")
    kind = dtypes.name_of(dtype or "float32")
    program.native.add_variable(name, kind, sizes, lod_level=min(levels, 1), is_data=True)
    variable = program.var(name)
    return groups.declare(variable) if levels == 2 else variable


def _sizes(shape):
    try:
        sizes = [-1 if size is None else operator.index(size) for size in shape]
    except TypeError as error:
        raise Error(
            "config", f"paddle.static.data(shape={shape!r}): {error}", "give a list of integers and None"
        ) from error
    # Any size below zero is one that is not known: scripts of 1.x multiply -1 by other sizes.
    return [max(size, -1) for size in sizes]


def create_global_var(
    shape: Sequence[int],
    value: float,
    dtype: DTypeLike,
    persistable: bool = False,
    force_cpu: bool = False,
    name: str | None = None,
) -> Variable:
    """A variable that the start-up program fills with `value`; no optimizer changes it."""
    name = name or framework.unique_name("_generated_var")
    main, startup = framework.default_main_program(), framework.default_startup_program()
    for program in (main, startup):
        program.native.add_variable(
            name, dtypes.name_of(dtype), [int(size) for size in shape], persistable=True
        )
    startup.native.append(
        "fill_constant",
        [],
        [name],
        {"shape": [int(size) for size in shape], "value": float(value), "dtype": dtypes.name_of(dtype)},
    )
    return main.var(name)


class InputSpec:
    """Shape, type and name of an input, as value; `data()` makes the variable."""

    def __init__(
        self,
        shape: Sequence[int | None],
        dtype: DTypeLike = "float32",
        name: str | None = None,
        stop_gradient: bool = False,
    ) -> None:
        refuse("paddle.static.InputSpec", stop_gradient=(stop_gradient, False))
        self.shape = tuple(-1 if size is None else int(size) for size in shape)
        self.dtype = dtypes.of(dtype)
        self.name = name

    @classmethod
    def from_tensor(cls, tensor: Variable, name: str | None = None) -> InputSpec:
        """The shape and type of a variable, and its name where there is none given."""
        return cls(tensor.shape, tensor.dtype, name or tensor.name)

    @classmethod
    def from_numpy(cls, ndarray: Any, name: str | None = None) -> InputSpec:
        """The shape and type of an array."""
        return cls(ndarray.shape, ndarray.dtype, name)

    def batch(self, batch_size: int) -> InputSpec:
        """Itself, of so many: a new first axis."""
        self.shape = (int(batch_size), *self.shape)
        return self

    def unbatch(self) -> InputSpec:
        """Itself without the first axis. Throws: Error(config) where it has none."""
        if not self.shape:
            raise Error("config", f"{self!r}.unbatch(): it has no axis")
        self.shape = self.shape[1:]
        return self

    def create(self) -> Variable:
        """The program's input of this name. Throws: Error(config) without a name."""
        if not self.name:
            raise Error("config", "InputSpec without a name cannot be fed", "give it name=…")
        return data(self.name, self.shape, self.dtype)

    def __repr__(self) -> str:
        return f"InputSpec(shape={self.shape}, dtype={self.dtype}, name={self.name})"

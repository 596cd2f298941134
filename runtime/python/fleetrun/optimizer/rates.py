"""The learning rate of a program: a variable that a schedule or the program itself gives its value."""

from __future__ import annotations

import math

from fleetrun import framework, tensor
from fleetrun._error import Error
from fleetrun._types import Program, Variable

__all__ = ["computed_rate", "constant", "expect_one", "rate_variable", "startup_of"]


def expect_one(function: str, variable: Variable) -> None:
    """Throws: Error(config) for what is not one float32."""
    if variable.dtype.name != "float32" or list(variable.shape) not in ([], [1]):
        raise Error(
            "config",
            f"{function}(learning_rate={variable.name}): it is {variable.dtype.name} {list(variable.shape)}",
            "give one float32",
        )


def computed_rate(variable: Variable) -> str:
    """The name of the variable as float32 [1]."""
    return variable.name if variable.ndim else tensor.reshape(variable, [1]).name


def constant(main: Program, rate: float) -> Variable:
    """A variable of the program with this value. Shape: [1]."""
    with framework.program_guard(main):
        return tensor.full([1], rate, "float32")


def startup_of(main: Program) -> Program:
    """The default start-up program, or where that gives a parameter no first value, the one that does: a
    script may minimize() outside of the program_guard that it built its net in."""
    default = framework.default_startup_program()
    for parameter in main.all_parameters():
        if not default.has_var(parameter.name):
            return parameter.startup or default
    return default


def rate_variable(main: Program, startup: Program, value: float) -> str:
    """The name of a new variable of both programs, which holds the learning rate."""
    name = framework.unique_name("learning_rate")
    for program in (main, startup):
        program.native.add_variable(name, "float32", [1], persistable=True)
    startup.native.append("fill_constant", [], [name], {"shape": [1], "value": value, "dtype": "float32"})
    return name


def expect_finite(function: str, **numbers: float) -> None:
    """Throws: Error(config) for a number that is none, or infinite."""
    for name, value in numbers.items():
        if not math.isfinite(value):
            raise Error(
                "config",
                f"{function}({name}={value!r}) is not a number that can be computed with",
                f"give {name} as a number",
            )

"""What servers saved (fleet.save_persistables), for a program that has all parameters as arrays: a model that
was trained on servers is tested in one process, as with Paddle's files of one variable each."""

from __future__ import annotations

import os

import numpy

from fleetrun import _lazy, _native, framework
from fleetrun._arguments import warn_once
from fleetrun._error import Error
from fleetrun._scope import Scope
from fleetrun._types import Any, Iterable, Program

__all__ = ["are_in", "read"]


def are_in(dirname: str) -> bool:
    """Whether servers saved there."""
    return os.path.exists(os.path.join(dirname, "manifest"))


def read(program: Program, names: Iterable[str], dirname: str) -> dict[str, Any]:
    """{name: array} of those of these variables that servers have: parameters. A row that was never
    trained is the one that the variable has, and a variable that has no value yet has its first one. Throws:
    Error(data) for values that are not such a variable's."""
    tables = _native.saved_values(dirname)
    wanted = set(names)
    _give_first_values(wanted)
    found = {name: _array(program, name, tables[name], dirname) for name in wanted.intersection(tables)}
    if wanted and not found:
        raise Error(
            "data",
            f"{dirname} holds {', '.join(sorted(tables)[:5])}, and not {', '.join(sorted(wanted)[:5])}",
            "build the program that was trained, with the same names",
        )
    without = sorted(wanted - found.keys())
    if without:
        warn_once(
            f"{dirname} without {without}",
            f"{dirname} is of servers, which save parameters: {', '.join(without[:5])} "
            f"{'and others ' if len(without) > 5 else ''}stay as they are",
        )
    return found


def _give_first_values(names):
    """As the start-up program gives them, to those of these variables that have none: Paddle's scripts load
    without having run it."""
    from fleetrun.static.executor import Executor

    scope, startup = framework.global_scope(), framework.default_startup_program()
    without = [name for name in names if not scope.native.has(name) and startup.has_var(name)]
    if without:
        first = Scope()
        Executor().run(startup, scope=first)
        for name in without:
            scope.native.set_value(name, numpy.asarray(first.native.value(name)))


def _array(program, name, saved, dirname):
    shape = list(program.native.variable(name).shape)
    if not isinstance(saved, tuple):
        values = numpy.asarray(saved).reshape(-1)
        if values.size != numpy.prod(shape, dtype=int):
            _refuse(dirname, name, f"{values.size} values", shape)
        return values.reshape(shape)
    keys, rows = (numpy.asarray(part) for part in saved)
    if len(shape) != 2 or rows.shape[1:] != (shape[1],):
        _refuse(dirname, name, f"rows of {rows.shape[1]}", shape)
    if len(keys) and (keys.min() < 0 or keys.max() >= shape[0]):
        _refuse(dirname, name, f"a row {keys.max()}", shape)
    scope = framework.global_scope().native
    if not scope.has(name):
        raise Error("config", f"{name} has no value", "run the start-up program before loading")
    values = numpy.array(scope.value(name))
    values[keys] = rows
    return values


def _refuse(dirname, name, what, shape):
    raise Error(
        "data", f"{dirname}: {name} has {what} there, and is {shape} in the program", "load its model"
    )


__getattr__, __dir__ = _lazy.attach(__name__)

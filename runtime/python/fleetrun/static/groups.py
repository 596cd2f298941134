"""Sequences that are parted into groups: variables with lod_level 2.

The engine has one level, the innermost. How many sequences each group has is a variable of its own, [groups]
int64: of an input NAME it is the input NAME.groups, which Executor.run fills from the LoDTensor that is fed.
"""

from __future__ import annotations

import numpy

from fleetrun import framework
from fleetrun._error import Error
from fleetrun._groups import GROUPS, groups_of, put
from fleetrun._types import Any, Iterable, Mapping, Program, Variable
from fleetrun.lod_tensor import LoDTensor
from fleetrun.static.sequences import with_lengths

__all__ = ["declare", "feeds", "give", "groups_of", "name_of", "put", "without_rows"]


def name_of(name: str) -> str:
    """The input that says how many sequences each group of the input `name` has."""
    return f"{name}.groups"


def declare(variable: Variable) -> Variable:
    """Lets an input of sequences have groups of them. Returns it."""
    groups = name_of(variable.name)
    variable.program.native.add_variable(groups, "int64", [-1], is_data=True)
    GROUPS.of(variable.program)[variable.name] = groups
    return variable


def without_rows(pooled: Variable, x: Variable) -> Variable:
    """`pooled`, which has a row for each sequence of x, its rows in sequences as the sequences of x are in
    groups."""
    groups = groups_of(x)
    return pooled if groups is None else with_lengths(pooled, groups)


def feeds(program: Program, name: str, value: Any) -> dict[str, Any]:
    """What is fed besides for an input that is fed `value`. Throws: Error(config) where the levels
    disagree."""
    has = program.has_var(name_of(name))
    levels = value.lod() if isinstance(value, LoDTensor) else []
    if len(levels) > 1 + has or (has and len(levels) == 1):
        raise Error(
            "config",
            f"{name} is declared with lod_level={1 + has}, and is fed a LoDTensor with {len(levels)} levels",
            "declare lod_level as many levels as are fed, 2 at most",
        )
    if not has:
        return {}
    if len(levels) == 2:
        return {name_of(name): numpy.diff(numpy.array(levels[0], "int64"))}
    return {name_of(name): numpy.ones(len(value) if numpy.ndim(value) else 0, "int64")}


def give(
    program: Program, fetched: Iterable[tuple[str, LoDTensor]], fed: Mapping[str, Any], runner: Any
) -> None:
    """Gives fetched sequences the groups that they have."""
    if not program.beside("groups"):
        return
    with framework.program_guard(program):
        found = [(value, groups_of(program.var(name))) for name, value in fetched]
    for value, groups in found:
        if groups is not None:
            now = fed[groups.name] if groups.name in fed else runner.value(groups.name)
            value.outer = [numpy.asarray(now).tolist()]

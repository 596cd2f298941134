"""A program made anew: as it was before minimize() changed it, or with other names."""

from __future__ import annotations

from types import MappingProxyType

from fleetrun import _native
from fleetrun._types import Any, Callable, Iterable, Mapping, Program

__all__ = ["rebuild", "renamed", "undo_minimize"]


def rebuild(
    program: Program,
    without: Iterable[str],
    change: Callable[[Any], tuple[Any, ...] | None],
    names: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Makes the program anew from its variables but for those `without`, and what change(operator) gives for
    each: (type, inputs, attributes), or None to leave it out. names: {before: after} of what is renamed."""

    def after(listed: Iterable[str]) -> list[str]:
        return [names.get(name, name) for name in listed]

    made = _native.Program()
    made.random_seed = program.random_seed
    for name in program.native.variable_names():
        known = program.native.variable(name)
        if name not in without:
            made.add_variable(
                names.get(name, name),
                known.type,
                known.shape,
                known.lod_level,
                known.persistable,
                known.trainable,
                known.stop_gradient,
                known.is_data,
            )
    for op in program.ops:
        changed = change(op)
        if changed is not None:
            kind, inputs, attributes = changed
            made.append(kind, after(inputs), after(op.outputs), attributes, op.where)
    program.native = made
    program.stay()


def renamed(program: Program, names: Mapping[str, str]) -> None:
    """Gives variables of the program other names: {before: after}."""
    rebuild(program, (), lambda op: (op.type, op.inputs, op.attributes), names)


def undo_minimize(main: Program, startup: Program) -> None:
    """Takes the operators of gradients and updates out of `main`, and from both programs the variables that
    are theirs alone."""
    used: set[str] = {parameter.name for parameter in main.all_parameters()}
    theirs: set[str] = set()
    for op in main.ops:
        (theirs if op.attributes.get("role") else used).update(op.inputs, op.outputs)
    own = {name for name in theirs - used if name and not main.var(name).is_data}
    rebuild(main, own, lambda op: None if op.attributes.get("role") else (op.type, op.inputs, op.attributes))
    rebuild(
        startup, own, lambda op: None if own.issuperset(op.outputs) else (op.type, op.inputs, op.attributes)
    )

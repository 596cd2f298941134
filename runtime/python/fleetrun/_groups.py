"""Which variables have sequences that are parted into groups (lod_level 2), and how many each group has.

Above are static.groups, for inputs and what is fetched, and tensor.assign(), which copies groups, too.
"""

from __future__ import annotations

from fleetrun import _graph
from fleetrun._error import Error
from fleetrun._graph import SideTable
from fleetrun._types import Any, Iterator, Program, Variable

__all__ = ["copied", "GROUPS", "groups_of", "origins", "put"]

# {variable of sequences in groups: the one that says how many each has}.
GROUPS: SideTable[dict[str, str]] = SideTable("groups", dict, copied=dict)

# What keeps the rows of its first input, also where the engine gives its output no sequences.
_KEEPS = (
    "abs assign cast clip concat dropout exp layer_norm linear log matmul pow relu reshape scale sigmoid "
    "softmax sqrt square squeeze stack tanh unsqueeze"
)
_REDUCES = "all any max mean min prod sum"


def origins(x: Variable) -> Iterator[tuple[Program, str]]:
    """The names of x and of what its rows come from, each with its program, as far as operators keep rows."""
    program: Program | None = _graph.default_main_program()
    seen = _graph.standing_for(x.name)
    while program is not None:
        yield program, seen
        for op in reversed(program.ops):
            if seen not in op.outputs:
                continue
            if not _keeps_rows(program, op):
                return
            seen = op.inputs[0]
            yield program, seen
        program = program.outer


def _keeps_rows(program, op):
    """Whether the first output has the rows of the first input."""
    if op.type == "lod_reset" or not op.inputs or not op.inputs[0]:
        return False
    axes: Any = op.attributes.get("axis")
    if op.type in _REDUCES.split():
        return bool(axes) and 0 not in axes
    if op.type in ("expand", "tile"):
        return _has_the_rows(program, op)
    if op.type in _KEEPS.split() or op.type.startswith("elementwise_"):
        return axes != 0
    levels = (program.native.variable(name).lod_level for name in (op.inputs[0], op.outputs[0]))
    return all(levels)


def _has_the_rows(program, op):
    """Whether what is repeated has as many rows as before."""
    ranks = [len(program.native.variable(name).shape) for name in (op.inputs[0], op.outputs[0])]
    first = (op.attributes.get("repeat_times") or op.attributes.get("shape") or [0])[0]
    return ranks[0] == ranks[1] and first == (1 if "repeat_times" in op.attributes else -1)


def put(x: Variable, groups: Variable | None) -> Variable:
    """Lets x have these groups [groups] int64 of its sequences, none for None. Returns x."""
    if groups is not None:
        GROUPS.of(x.program)[x.name] = groups.name
    return x


def groups_of(x: Variable) -> Variable | None:
    """How many sequences each group has, [groups] int64; None for a variable without groups."""
    for program, name in origins(x):
        found = GROUPS.of(program).get(name)
        if found is not None:
            return _var_of(program, found)
    return None


def _var_of(program, name):
    """The variable of a program, or of the one around it: groups in a loop may be those of before it."""
    while program.outer is not None and not program.has_var(name):
        program = program.outer
    return program.var(name)


def _any_groups():
    """Whether a variable of the program that is being written, or of those around it, has groups: asked for
    each copy, so without a look at the operators."""
    program = _graph.default_main_program()
    while program is not None:
        if program.beside("groups"):
            return True
        program = program.outer
    return False


def copied(x: Variable, output: Variable) -> None:
    """Lets `output`, which x is copied into, have the groups of x. Throws: Error(config) for one that has
    those of another variable."""
    groups = groups_of(x) if _any_groups() else None
    if groups is None:
        return
    own = GROUPS.of(output.program).get(output.name)
    if own is not None:
        _graph.append("assign", "assign", [groups], outputs=[own])
    elif output.program is _graph.default_main_program():
        put(output, _graph.append("assign", "assign", [groups]))
    else:
        raise Error(
            "config",
            f"assign({x.name}, {output.name}) in a loop: {output.name} has no groups of sequences of its own",
            "make it before the loop with assign() of a variable with lod_level=2",
        )

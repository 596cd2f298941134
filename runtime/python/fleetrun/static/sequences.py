"""Where the rows of sequences lie: what the layers of sequence_lod compose themselves from.

A variable with lod_level 1 holds the rows of all sequences behind each other; n sequences, `total` rows. With
lod_level 2 they are parted into groups (groups.py).
"""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._error import Error
from fleetrun._graph import SideTable
from fleetrun._types import Any, Iterator, Program, Variable

__all__ = [
    "context", "flat_numbers", "groups_of", "in_sequences", "Layout", "lengths_of", "put", "with_lengths",
]  # fmt: skip

# {variable of sequences in groups: the one that says how many each has}.
GROUPS: SideTable[dict[str, str]] = SideTable("groups", dict, copied=dict)


def lengths_of(x: Variable, call: str) -> Variable:
    """How many rows each sequence has. Shape: [n] int64. Throws: Error(config) for a variable without
    sequences, naming `call`."""
    x = _with_sequences(x, call)
    ones = tensor.cast(tensor.full_like(x, 1), "float32")
    counts = framework.append("sequence_pool", "sequence_pool", [ones], {"pool_type": "sum"})
    width = 1
    for size in x.shape[1:]:
        width *= size
    if width < 1:
        raise Error("config", f"paddle.static.nn.{call}: {x.name} has the shape {list(x.shape)}",
                    "all axes but the first need known sizes")  # fmt: skip
    first = tensor.slice(tensor.reshape(counts, [-1, width]), [1], [0], [1])
    return tensor.cast(tensor.reshape(first, [-1]), "int64")


# What keeps the rows of its first input, also where the engine gives its output no sequences.
_KEEPS = (
    "abs assign cast clip concat dropout exp layer_norm linear log matmul pow relu reshape scale sigmoid "
    "softmax sqrt square squeeze stack tanh unsqueeze"
)
_REDUCES = "all any max mean min prod sum"


def _origins(x: Variable) -> Iterator[tuple[Program, str]]:
    """The names of x and of what its rows come from, each with its program, as far as operators keep rows."""
    program: Program | None = framework.default_main_program()
    seen = framework.standing_for(x.name)
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


def _with_sequences(x, call):
    """x, or the variable whose rows it has, as it has sequences: Paddle's layers hand them on."""
    if x.lod_level:
        return x
    for program, name in _origins(x):
        if program.native.variable(name).lod_level:
            return program.var(name)
    raise Error(
        "config",
        f"paddle.static.nn.{call}: {x.name} has no sequences",
        "declare its data variable with lod_level=1",
    )


def _has_the_rows(program, op):
    """Whether what is repeated has as many rows as before."""
    ranks = [len(program.native.variable(name).shape) for name in (op.inputs[0], op.outputs[0])]
    first = (op.attributes.get("repeat_times") or op.attributes.get("shape") or [0])[0]
    return ranks[0] == ranks[1] and first == (1 if "repeat_times" in op.attributes else -1)


def in_sequences(x: Variable, call: str) -> Variable:
    """x with the sequences of what its rows come from. Throws: Error(config) where there are none."""
    return x if x.lod_level else put(with_lengths(x, lengths_of(x, call)), groups_of(x))


def put(x: Variable, groups: Variable | None) -> Variable:
    """Lets x have these groups [groups] int64 of its sequences, none for None. Returns x."""
    if groups is not None:
        GROUPS.of(x.program)[x.name] = groups.name
    return x


def groups_of(x: Variable) -> Variable | None:
    """How many sequences each group has, [groups] int64; None for a variable without groups."""
    for program, name in _origins(x):
        found = GROUPS.of(program).get(name)
        if found is not None:
            return program.var(found)
    return None


def with_lengths(x: Variable, lengths: Variable) -> Variable:
    """x, its rows in sequences of these lengths [n] int64."""
    return framework.append("lod_reset", "lod_reset", [x, lengths])


def flat_numbers(x: Variable) -> Variable:
    """Whole numbers in any shape as [n] int64."""
    return tensor.cast(tensor.reshape(x, [-1]), "int64")


class Layout:
    """Of sequences of these lengths [n]: `starts` [n], the first row of each; `owner` [total], the sequence
    of each row; `place` [total], where in its sequence a row lies; `row` [total], 0, 1, …"""

    def __init__(self, lengths: Variable) -> None:
        self.lengths = lengths
        ends = tensor.cumsum(lengths, 0)
        self.starts = ends - lengths
        self.total = tensor.sum(lengths)
        marks = tensor.scatter(
            tensor.zeros([self.total + 1], "int64"), ends, tensor.ones_like(ends), overwrite=False
        )
        self.row = tensor.arange(0, self.total, 1)
        self.owner = tensor.gather(tensor.cumsum(marks, 0), self.row)
        self.place = self.row - self.of_owner(self.starts)

    def of_owner(self, values: Variable) -> Variable:
        """For each row, its sequence's of `values` [n, ..]. Shape: [total, ..]."""
        return tensor.gather(values, self.owner)

    @property
    def room(self) -> Variable:
        """For each row, how many rows its sequence has."""
        return self.of_owner(self.lengths)


def context(x: Variable, layout: Layout, start: int, length: int, pad: Any = None) -> list[Variable]:
    """For every row of x those from start to start + length of its sequence, one variable for each; where the
    sequence has none, `pad`, a row, or zeros. Shape of each: that of x."""
    if pad is None:
        pad = tensor.zeros([1, *x.shape[1:]], x.dtype)
    source = tensor.concat([x, pad], 0)
    rows = []
    for shift in range(start, start + length):
        there = layout.place + shift
        is_there = tensor.logical_and(there >= 0, there < layout.room)
        rows.append(tensor.gather(source, tensor.where(is_there, layout.row + shift, _same(layout))))
    return rows


def _same(layout):
    """The row behind the last one, for each row."""
    return tensor.zeros_like(layout.row) + layout.total

"""Where the rows of sequences lie: what the layers of sequence_lod compose themselves from.

A variable with lod_level 1 holds the rows of all sequences behind each other; n sequences, `total` rows. With
lod_level 2 they are parted into groups (groups.py).
"""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._error import Error
from fleetrun._groups import groups_of, origins, put
from fleetrun._types import Any, Variable

__all__ = ["context", "flat_numbers", "in_sequences", "Layout", "lengths_of", "with_lengths"]


def lengths_of(x: Variable, call: str) -> Variable:
    """How many rows each sequence has. Shape: [n] int64. Throws: Error(config) for a variable without
    sequences, naming `call`."""
    x = _with_sequences(x, call)
    ones = tensor.cast(tensor.full_like(x, 1), "float32")
    counts = framework.append("sequence_pool", "sequence_pool", [ones], {"pool_type": "sum"})
    axes = list(range(1, len(x.shape)))  # whose sizes need not be known
    first = tensor.slice(counts, axes, [0] * len(axes), [1] * len(axes)) if axes else counts
    return tensor.cast(tensor.reshape(first, [-1]), "int64")


def _with_sequences(x, call):
    """x, or the variable whose rows it has, as it has sequences: Paddle's layers hand them on."""
    if x.lod_level:
        return x
    for program, name in origins(x):
        if program.native.variable(name).lod_level:
            return program.var(name)
    raise Error(
        "config",
        f"paddle.static.nn.{call}: {x.name} has no sequences",
        "declare its data variable with lod_level=1",
    )


def in_sequences(x: Variable, call: str) -> Variable:
    """x with the sequences of what its rows come from. Throws: Error(config) where there are none."""
    return x if x.lod_level else put(with_lengths(x, lengths_of(x, call)), groups_of(x))


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

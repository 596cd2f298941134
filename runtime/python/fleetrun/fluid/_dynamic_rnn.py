"""fluid.layers.DynamicRNN: a step that is written once and done along sequences of any lengths."""

from __future__ import annotations

import contextlib

from fleetrun import tensor
from fleetrun._error import Error
from fleetrun._types import Any, DTypeLike, Iterator, Sequence, Variable
from fleetrun.static import loops
from fleetrun.static.sequence_lod import sequence_pad, sequence_unpad
from fleetrun.static.sequences import Layout, in_sequences, lengths_of, with_lengths

__all__ = ["DynamicRNN"]


def _rank(lengths: Variable) -> Variable:
    """The sequences from the longest to the shortest, equal ones in order. Shape: [n] -> [n] int64."""
    count = tensor.shape(lengths)[0]
    place = tensor.arange(0, count, 1, "int64")
    keys = lengths * tensor.cast(count, "int64") - place
    return tensor.argsort(keys, descending=True)


def _in_order(x, order):
    if not x.lod_level:
        return tensor.gather(x, order)
    padded, lengths = sequence_pad(x, tensor.zeros([1], x.dtype))
    return sequence_unpad(tensor.gather(padded, order), tensor.gather(lengths, order))


class DynamicRNN:
    """The block `with rnn.block():` is a step along sequences: the longest begin, and those that have ended
    are left out. As in Paddle 1.x a step has the sequences from the longest to the shortest, and a memory's
    `init` is taken as it is but for need_reorder."""

    def __init__(self, name: str | None = None) -> None:
        self._body: Any = None
        self._lengths: Any = None
        # The sequences that go on, as places in the order of their lengths.
        self._active: Any = None
        self._memories: dict[str, Variable] = {}
        self._updates: dict[str, Variable] = {}
        self._given: list[Variable] = []
        self._made: Any = None

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """The step. Throws: Error(config) without step_input() or output()."""
        if self._body is not None:
            raise Error("config", "DynamicRNN.block() is there already", "a DynamicRNN has one block")
        with loops.building() as self._body:
            step = loops.StepBuilder(self._body)
            self._step = step
            yield
            self._expect_input("block")
            if not self._given:
                raise Error("config", "DynamicRNN without an output", "end its block with rnn.output(...)")
            following = [self._updates.get(name, memory) for name, memory in self._memories.items()]
            count = tensor.reshape(tensor.cast(tensor.shape(self._active)[0], "int64"), [1])
            step.end(following, [count, *self._given])
        _, (counts, *collected) = step.append(tensor.max(self._lengths))
        self._made = [self._along_sequences(counts, one) for one in collected]

    def _along_sequences(self, counts, collected):
        """Rows that lie step by step as rows of sequences."""
        before = tensor.cumsum(counts, 0) - counts
        rank = tensor.argsort(self._order)
        layout = self._layout
        rows = tensor.gather(before, layout.place) + layout.of_owner(rank)
        return with_lengths(tensor.gather(collected, rows), self._lengths)

    def step_input(self, x: Variable, level: int = 0) -> Variable:
        """This step's rows of the sequences x, those of the longest first. All have the same lengths."""
        if self._body is None:
            raise Error("config", "DynamicRNN.step_input() outside of its block", "call it in rnn.block()")
        if level != 0:
            raise Error("config", f"DynamicRNN.step_input(level={level})", "sequences have one level: 0")
        with self._step.outside():
            x = in_sequences(x, "DynamicRNN")
            if self._lengths is None:
                self._lengths = lengths_of(x, "DynamicRNN")
                self._layout = Layout(self._lengths)
                self._order = _rank(self._lengths)
                self._sorted = tensor.gather(self._lengths, self._order)
                self._starts = tensor.gather(self._layout.starts, self._order)
        if self._active is None:
            self._active = tensor.reshape(tensor.nonzero(self._sorted > self._step.index), [-1])
        return tensor.gather(x, tensor.gather(self._starts, self._active) + self._step.index)

    def static_input(self, x: Variable) -> Variable:
        """The rows, or the sequences, of x of the sequences that go on, in each step the same."""
        self._expect_input("static_input")
        with self._step.outside():
            lengths: Any = None
            if x.lod_level:
                x, lengths = sequence_pad(x, tensor.zeros([1], x.dtype))
                lengths = tensor.gather(lengths, self._order)
            x = tensor.gather(x, self._order)
        x = tensor.gather(x, self._active)
        return x if lengths is None else sequence_unpad(x, tensor.gather(lengths, self._active))

    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        value: float = 0.0,
        need_reorder: bool = False,
        dtype: DTypeLike = "float32",
    ) -> Variable:
        """What update_memory() has put in in the step before, of the sequences that go on; in the first
        `init`, a row for each sequence, or rows of `shape` full of `value`."""
        self._expect_input("memory")
        with self._step.outside():
            if init is not None:
                first = _in_order(init, self._order) if need_reorder else tensor.assign(init)
            elif shape is not None:
                count = tensor.shape(self._lengths)[0]
                first = tensor.full([count, *map(int, shape)], value, dtype)
            else:
                raise Error("config", "DynamicRNN.memory without init", "give it init or shape")
        entering = self._step.carry(first)
        memory: Variable = tensor.gather(entering, self._active)
        self._memories[memory.name] = memory
        return memory

    def update_memory(self, ex_mem: Variable, new_mem: Variable) -> None:
        """Lets the memory be new_mem in the next step."""
        if ex_mem.name not in self._memories:
            raise Error("config", f"DynamicRNN.update_memory({ex_mem.name}): it is not a memory")
        self._updates[ex_mem.name] = new_mem

    def output(self, *outputs: Variable) -> None:
        """Gives these rows of every step."""
        self._given += outputs

    def _expect_input(self, call):
        if self._lengths is None:
            raise Error(
                "config", f"DynamicRNN.{call}() before step_input()", "begin the block with rnn.step_input(x)"
            )

    def __call__(self) -> Any:
        """What output() was given, as sequences like those of the step's inputs: one variable, or a list."""
        if self._made is None:
            raise Error("config", "DynamicRNN() before its block", "write `with rnn.block():` first")
        return self._made[0] if len(self._made) == 1 else self._made

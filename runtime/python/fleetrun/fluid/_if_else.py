"""fluid.layers.IfElse: rows of a batch that go one of two ways, and come together again."""

from __future__ import annotations

import contextlib

from fleetrun import tensor
from fleetrun._error import Error
from fleetrun._types import Any, Iterator, Variable

__all__ = ["IfElse"]


class IfElse:
    """The rows for which `cond` (bool [n, 1]) holds are those of `with ie.true_block():`, the others of
    false_block(); ie() gives the outputs of both in the order of the batch."""

    def __init__(self, cond: Variable, name: str | None = None) -> None:
        flat = tensor.reshape(tensor.cast(cond, "bool"), [-1])
        self._rows = [tensor.reshape(tensor.nonzero(one), [-1]) for one in (flat, tensor.logical_not(flat))]
        self._outputs: list[list[Variable]] = [[], []]
        self._way: int | None = None

    @contextlib.contextmanager
    def _block(self, way: int) -> Iterator[None]:
        self._way = way
        yield
        self._way = None

    def true_block(self) -> Any:
        """Within `with`: the rows for which the condition holds."""
        return self._block(0)

    def false_block(self) -> Any:
        """Within `with`: the other rows."""
        return self._block(1)

    def _within(self, call: str) -> int:
        if self._way is None:
            raise Error(
                "config", f"IfElse.{call}() outside of its blocks", "call it in true_block() or false_block()"
            )
        return self._way

    def input(self, x: Variable) -> Variable:
        """The block's rows of x."""
        return tensor.gather(x, self._rows[self._within("input")])

    def output(self, *outs: Variable) -> None:
        """What the block makes of its rows, a row for each."""
        self._outputs[self._within("output")] += outs

    def __call__(self) -> list[Variable]:
        """The outputs, a row for each of the batch. Throws: Error(config) where the blocks have not as
        many."""
        made, others = self._outputs
        if made and others and len(made) != len(others):
            raise Error("config", f"IfElse: one block has {len(made)} outputs, the other {len(others)}")
        if not made or not others:
            return made or others
        place = tensor.argsort(tensor.concat(self._rows, 0))
        return [tensor.gather(tensor.concat(pair, 0), place) for pair in zip(made, others)]

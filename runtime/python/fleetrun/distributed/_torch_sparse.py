"""all_reduce of sparse tensors for backend "fleetrun"."""

from __future__ import annotations

from typing import Any

import torch

from fleetrun import _native
from fleetrun._error import Error
from fleetrun.distributed import collectives as calls
from fleetrun.distributed._arrays import view
from fleetrun.distributed._generations import the_generations
from fleetrun.distributed._torch_ends import Ends, note
from fleetrun.distributed._torch_tensors import bytes_of, row_bytes
from fleetrun.distributed._torch_works import done, started
from fleetrun.distributed._world import Group

__all__ = ["SparseSums"]


class SparseSums:
    """Those of a group, in their order. The ranks have different numbers of rows, and learn them first: so
    each is several calls, made beside all others, and beside the caller where it does not wait."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._ends = Ends(group)
        self._last: torch.futures.Future | None = None

    def start(self, tensors: list[torch.Tensor], operation: int, sync: bool) -> Any:
        """Rows of the same place are added. Returns: a work, which has ended where it is `sync`. Throws:
        Error(config) for another operation, and where shapes differ."""
        if operation != calls.ReduceOp.SUM:
            raise Error("config", "all_reduce of a sparse tensor, which has no other operation than SUM")
        if sync and (self._last is None or self._last.done()):
            try:
                self._add(tensors)
            except Error as error:
                note(error, the_generations.age, self._group)
                raise
            return done(tensors)
        self._last = torch.futures.Future()
        self._ends.add(calls.Task(), lambda: self._add(tensors), self._last)
        work = started([self._last], tensors)
        if sync:
            work.wait()
        return work

    def close(self) -> None:
        """Its thread goes when it has completed what was started."""
        self._ends.close()

    def _add(self, tensors):
        with torch.no_grad():
            for tensor in tensors:
                mine = tensor.coalesce()
                shape = torch.tensor([[mine._nnz(), mine.sparse_dim(), *mine.shape]])
                shapes = self._every(shape)
                if not torch.equal(shapes[:, 1:], shape[:, 1:].expand_as(shapes[:, 1:])):
                    said = f"all_reduce of sparse tensors of different shapes: {shapes.tolist()}"
                    raise Error("config", said)
                counts = shapes[:, 0].tolist()
                indices = self._every(mine.indices().t().contiguous(), counts).t()
                values = self._every(mine.values(), counts)
                tensor.copy_(torch.sparse_coo_tensor(indices, values, tensor.shape).coalesce())

    def _every(self, rows, counts=None):
        """The ranks' rows behind each other, counts[r] of rank r, by default one."""
        joined = rows.new_empty((sum(counts) if counts else self._group.nranks, *rows.shape[1:]))
        mine, every, width = bytes_of(rows), bytes_of(joined), row_bytes(rows)
        sizes = [count * width for count in counts or [1] * self._group.nranks]
        call = _native.Call(_native.CallKind.all_gather, view(mine), view(every), counts=sizes)
        self._group.beside("sparse").run(call)
        return joined

"""all_reduce of sparse tensors for backend "fleetrun"."""

from __future__ import annotations

import torch

from fleetrun import _native
from fleetrun._error import Error
from fleetrun.distributed import collectives as calls
from fleetrun.distributed._arrays import view
from fleetrun.distributed._torch_tensors import bytes_of, row_bytes
from fleetrun.distributed._world import Group

__all__ = ["sum_sparse"]


def sum_sparse(tensors: list[torch.Tensor], operation: str, group: Group) -> None:
    """Rows of the same place are added. The ranks have different numbers of them, and learn them first: it is
    done when this returns. Throws: Error(config) for another operation, and for shapes that differ."""
    if operation != calls.ReduceOp.SUM:
        raise Error("config", "all_reduce of a sparse tensor, which has no other operation than SUM")
    for tensor in tensors:
        with torch.no_grad():
            mine = tensor.coalesce()
            shape = torch.tensor([[mine._nnz(), mine.sparse_dim(), *mine.shape]])
            shapes = _every(shape, group)
            if not torch.equal(shapes[:, 1:], shape[:, 1:].expand_as(shapes[:, 1:])):
                raise Error("config", f"all_reduce of sparse tensors of different shapes: {shapes.tolist()}")
            counts = shapes[:, 0].tolist()
            indices = _every(mine.indices().t().contiguous(), group, counts).t()
            values = _every(mine.values(), group, counts)
            tensor.copy_(torch.sparse_coo_tensor(indices, values, tensor.shape).coalesce())


def _every(rows, group, counts=None):
    """The ranks' rows behind each other, counts[r] of rank r, by default one."""
    joined = rows.new_empty((sum(counts) if counts else group.nranks, *rows.shape[1:]))
    mine, every, width = bytes_of(rows), bytes_of(joined), row_bytes(rows)
    sizes = [count * width for count in counts or [1] * group.nranks]
    call = _native.Call(_native.CallKind.all_gather, view(mine), view(every), counts=sizes)
    calls._call(group, True, call)
    return joined

"""fluid.layers.collective: collective calls as operators of a program of 1.x."""

from __future__ import annotations

from fleetrun import tensor
from fleetrun._error import Error
from fleetrun._types import Any, Variable
from fleetrun.distributed import collectives, ranks

__all__ = [
    "_allreduce", "_broadcast", "_c_allgather", "_c_allreduce", "_c_broadcast", "_c_reducescatter",
    "_c_sync_calc_stream", "_c_sync_comm_stream",
]  # fmt: skip


def _c_allreduce(
    x: Variable,
    out: Variable | None = None,
    reduce_type: str = "sum",
    ring_id: int = 0,
    use_calc_stream: bool = False,
) -> Variable:
    """The ranks' x reduced by "sum", "prod", "max" or "min", in `out` or a new variable."""
    operation = getattr(collectives.ReduceOp, str(reduce_type).upper(), None)
    if reduce_type not in ("sum", "prod", "max", "min"):
        raise TypeError(f"reduce type {reduce_type!r} can only be sum, prod, max or min")
    out = x if out is x else tensor.assign(x, out)
    collectives.all_reduce(out, operation)
    return out


def _allreduce(
    x: Variable, out: Variable | None = None, reduce_type: str = "sum", sync_mode: bool = False
) -> Variable:
    """_c_allreduce."""
    return _c_allreduce(x, out, reduce_type)


def _c_broadcast(x: Variable, root: int = 0, ring_id: int = 0, use_calc_stream: bool = False) -> Variable:
    """x, after it became that of rank `root`."""
    collectives.broadcast(x, root)
    return x


def _broadcast(x: Variable, root: int, sync_mode: bool = False) -> Variable:
    """_c_broadcast."""
    return _c_broadcast(x, root)


def _c_allgather(x: Variable, nranks: int, ring_id: int = 0, use_calc_stream: bool = False) -> Variable:
    """The ranks' x, one after the other along the first axis."""
    parts: list[Any] = []
    collectives.all_gather(parts, x)
    _expect_ranks("_c_allgather", nranks, len(parts))
    return tensor.concat(parts, axis=0)


def _c_reducescatter(x: Variable, nranks: int, ring_id: int = 0, use_calc_stream: bool = False) -> Variable:
    """This rank's part, along the first axis, of the sum of the ranks' x."""
    _expect_ranks("_c_reducescatter", nranks, ranks.get_world_size())
    parts = tensor.split(x, nranks, 0)
    out: Variable = tensor.assign(parts[0])
    collectives.reduce_scatter(out, parts)
    return out


def _expect_ranks(name, nranks, there):
    if nranks != there:
        raise Error("config", f"fluid.layers.collective.{name}: nranks={nranks}, and the job has {there}")


def _c_sync_calc_stream(x: Variable) -> Variable:
    """x: operators of a program run one after the other."""
    return x


def _c_sync_comm_stream(x: Variable, ring_id: int = 0) -> Variable:
    """x: operators of a program run one after the other."""
    return x

"""Messages between two ranks: arrays as fleetrun.distributed.collectives has them.

A message goes by itself: neither other calls of the group nor messages of other ranks hold it up, so that
both ranks may post their receive first. From one rank to another messages arrive in the order of the sends.
Names and signatures are Paddle's.
"""

from dataclasses import dataclass

from fleetrun import _native
from fleetrun._error import Error
from fleetrun._types import Any, Callable, Sequence
from fleetrun.distributed._arrays import view
from fleetrun.distributed._world import Group, the_world
from fleetrun.distributed.collectives import Task

__all__ = ["batch_isend_irecv", "irecv", "isend", "P2POp", "recv", "send"]

_KIND = _native.CallKind


def _start(kind, tensor, other, group, name):
    """The Task of a message to or from rank `other` of the job."""
    group = the_world.default_group if group is None else group
    rank = the_world.rank
    if group.get_group_rank(other) < 0 or group.get_group_rank(rank) < 0:
        who = f"{name}={other}" if group.get_group_rank(other) < 0 else f"this rank, {rank},"
        raise Error("config", f"{who} is not a rank of {group.name}, which has {group.ranks}")
    if other == rank:
        raise Error("config", f"{name}={other} is this rank", "a message goes to another rank")
    values = view(tensor)
    if kind == _KIND.send:
        call = _native.Call(kind, values, None, values.count, root=1)
        return Task(group.channel(rank, other).start(call))
    call = _native.Call(kind, None, values, values.count, root=0)
    return Task(group.channel(other, rank).start(call))


def isend(tensor: Any, dst: int, group: Group | None = None) -> Task:
    """send(), which returns a Task at once."""
    return _start(_KIND.send, tensor, dst, group, "dst")


def irecv(tensor: Any, src: int | None = None, group: Group | None = None) -> Task:
    """recv(), which returns a Task at once."""
    return _start(_KIND.receive, tensor, 0 if src is None else src, group, "src")


def send(tensor: Any, dst: int = 0, group: Group | None = None, sync_op: bool = True) -> Task:
    """Gives tensor to rank `dst`, which receives it."""
    return _finished(isend(tensor, dst, group), sync_op)


def recv(tensor: Any, src: int = 0, group: Group | None = None, sync_op: bool = True) -> Task:
    """tensor = what rank `src` sends."""
    return _finished(irecv(tensor, src, group), sync_op)


def _finished(task, sync_op):
    if sync_op:
        task.wait()
    return task


@dataclass
class P2POp:
    """A message of batch_isend_irecv: op is isend or irecv, peer the other rank of the job."""

    op: Callable[..., Task]
    tensor: Any
    peer: int
    group: Group | None = None

    def __post_init__(self) -> None:
        if self.op not in (isend, irecv):
            raise Error("config", f"P2POp of {self.op!r}", "use fleetrun.distributed.isend or irecv")


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Task]:
    """Starts these messages, in any order. Returns a Task for each."""
    if not p2p_op_list or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise Error("config", "batch_isend_irecv takes a list of P2POp that is not empty")
    return [each.op(each.tensor, each.peer, each.group) for each in p2p_op_list]

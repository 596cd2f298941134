"""Collective calls on arrays: numpy's, PyTorch's and any other with DLPack, in place.

Arrays in the memory of the host go over shared memory and Gloo, those on a GPU of CUDA's over NCCL, which the
first such call of a group loads and connects. The arrays of one call lie in the same place on all ranks: all
in their hosts, or all on their GPUs.

Names and signatures are Paddle's. All ranks of a group make the same calls in the same order; a call that
differs, and a rank that is gone, is an Error on every rank, which says who. sync_op=False returns a Task at
once: its arrays are not to be touched before task.wait() has returned. Ranks (src, dst) are those of the job,
also in calls of a group.

Given variables of a program, a call is an operator of it: every rank that runs the program makes the call on
the values that it has then.

Bools and complex numbers are reduced as such: the sum of bools says whether any is true, their product
whether all are; complex numbers have sums and means.
"""

import datetime

from fleetrun import _native
from fleetrun._error import Error
from fleetrun._types import Any, Callable, Iterable, Sequence
from fleetrun.distributed._arrays import copy, empty_like, join, view
from fleetrun.distributed._channel import Message
from fleetrun.distributed._in_programs import in_programs
from fleetrun.distributed._world import Group, the_world

__all__ = [
    "all_gather", "all_reduce", "alltoall", "alltoall_single", "barrier", "broadcast",
    "destroy_process_group", "gather", "get_backend", "get_group", "init_parallel_env", "is_available",
    "is_initialized", "new_group", "reduce", "reduce_scatter", "ReduceOp", "scatter", "Task", "wait",
]  # fmt: skip

_KIND, _OPERATION = _native.CallKind, _native.Operation


class ReduceOp:
    """What a reducing call does with the ranks' values. AVG is the sum divided by the number of ranks; BAND,
    BOR and BXOR combine the bits of integers and bools."""

    SUM = 0
    MAX = 1
    MIN = 2
    PROD = 3
    AVG = 4
    BAND = 5
    BOR = 6
    BXOR = 7


_OPERATIONS = {
    ReduceOp.SUM: _OPERATION.sum,
    ReduceOp.MAX: _OPERATION.max,
    ReduceOp.MIN: _OPERATION.min,
    ReduceOp.PROD: _OPERATION.prod,
    ReduceOp.AVG: _OPERATION.avg,
    ReduceOp.BAND: _OPERATION.bit_and,
    ReduceOp.BOR: _OPERATION.bit_or,
    ReduceOp.BXOR: _OPERATION.bit_xor,
}


class Task:
    """A call that was started, or one that has ended."""

    def __init__(
        self,
        started: _native.StartedCall | Message | None = None,
        then: Callable[[], object] | None = None,
    ) -> None:
        self._started = started
        self._then = then

    def is_completed(self) -> bool:
        """Whether wait() returns at once."""
        return self._started is None or self._started.has_ended()

    def is_sync(self) -> bool:
        """Whether the call had ended when it returned."""
        return self._started is None

    def wait(self, timeout: float | None = None) -> bool:
        """Returns when the call has ended. Throws: the call's Error."""
        started, self._started = self._started, None
        if started is not None:
            started.wait()
            if self._then is not None:
                self._then()
        return True


def _group(group):
    return the_world.default_group if group is None else group


_NAMES = {operation: name.lower() for name, operation in vars(ReduceOp).items() if name.isupper()}
_OF_BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
# Of bools, whose bytes are 0 and 1: any, and all.
_OF_BOOLS = {ReduceOp.SUM: ReduceOp.MAX, ReduceOp.PROD: ReduceOp.MIN}


def _operation(op, array):
    """The operation on an array's elements, as view() gives them."""
    if op not in _OPERATIONS:
        raise Error(
            "config", f"{op!r} is not a ReduceOp", f"use ReduceOp.{', '.join(_NAMES.values()).upper()}"
        )
    kind = str(getattr(array, "dtype", ""))
    name = _NAMES[op]
    if kind.endswith("bool"):
        if op == ReduceOp.AVG:
            raise Error("config", f"{name} of an array of {kind}", "convert it to a type of numbers")
        op = _OF_BOOLS.get(op, op)
    elif "complex" in kind and op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise Error("config", f"{name} of an array of {kind}: it has sums and means", "reduce its parts")
    elif op in _OF_BITS and "float" in kind:
        raise Error("config", f"{name} of an array of {kind}: only integers have bits to combine")
    return _OPERATIONS[op]


def _place(group, rank, name):
    place = group.get_group_rank(rank)
    if place < 0:
        raise Error("config", f"{name}={rank} is not a rank of {group.name}, which has {group.ranks}")
    return place


def _call(group, sync_op, call, then=None):
    """Makes or starts `call`; `then` follows it."""
    if not sync_op:
        return Task(group.communicator.start(call), then)
    group.communicator.run(call)
    if then is not None:
        then()
    return Task()


def init_parallel_env() -> Group:
    """Meets the other ranks of the job. Returns the group of all of them."""
    return the_world.default_group


def is_initialized() -> bool:
    """Whether this process has met the others."""
    return the_world.is_joined


def is_available() -> bool:
    """True: collectives are always there."""
    return True


def new_group(
    ranks: Iterable[int] | None = None,
    backend: str | None = None,
    timeout: datetime.timedelta = datetime.timedelta(seconds=1800),
) -> Group:
    """A group of `ranks`. Every rank of the job calls it, in the same order; members meet in their first
    call.

    backend: "gloo", "nccl" or None; where the arrays of a call lie decides. timeout: for each call of the
    group.
    """
    if backend not in (None, "gloo", "nccl", "auto"):
        raise Error("config", f"new_group(backend={backend!r}): there are gloo and nccl", "leave backend out")
    return the_world.new_group(ranks, {"call_within": timeout.total_seconds()})


def get_group(id: int = 0) -> Group | None:
    """The group of this number, None when there is none; 0: all ranks."""
    the_world.join()
    return the_world.groups.get(id)


def get_backend(group: Group | None = None) -> str:
    """The group's backend."""
    return _group(group).backend


def destroy_process_group(group: Group | None = None) -> None:
    """Lets `group` go; without one all groups, and leaves the job."""
    if group is None or group.id == 0:
        the_world.leave()
    else:
        group.close()
        the_world.groups.pop(group.id, None)


def _reduced_gradient(arguments, group):
    """The gradients of a sum are summed as well; the least and the largest have none, as in Paddle."""
    if arguments["op"] not in (ReduceOp.SUM, ReduceOp.AVG):
        return None

    import numpy

    def backward(given):
        given = numpy.array(given)
        all_reduce(given, arguments["op"], group)
        return given

    return backward


def _gathered_gradient(arguments, group):
    """The sum of what each rank has for this rank's part."""

    import numpy

    def backward(*given):
        like = numpy.array(next(one for one in given if one is not None))
        parts = [like * 0 if one is None else numpy.array(one) for one in given]
        reduce_scatter(made := like * 0, parts, group=group)
        return made

    return backward


def _scattered_gradient(arguments, group):
    """Each part's is what the rank has that got it; there is none of what was there before."""

    import numpy

    def backward(given):
        parts: list[Any] = []
        all_gather(parts, numpy.array(given), group)
        return [parts[0] * 0, *parts]

    return backward


@in_programs("tensor", _reduced_gradient)
def all_reduce(tensor: Any, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True) -> Task:
    """tensor = the ranks' tensors reduced."""
    values = view(tensor)
    return _call(
        _group(group),
        sync_op,
        _native.Call(_KIND.all_reduce, values, values, values.count, _operation(op, tensor)),
    )


@in_programs("tensor")
def broadcast(tensor: Any, src: int, group: Group | None = None, sync_op: bool = True) -> Task:
    """tensor = that of rank `src`."""
    group = _group(group)
    values = view(tensor)
    return _call(
        group,
        sync_op,
        _native.Call(_KIND.broadcast, values, values, values.count, root=_place(group, src, "src")),
    )


@in_programs("tensor")
def reduce(
    tensor: Any, dst: int, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True
) -> Task:
    """On rank `dst`: tensor = the ranks' tensors reduced."""
    group = _group(group)
    values = view(tensor)
    return _call(
        group,
        sync_op,
        _native.Call(
            _KIND.reduce, values, values, values.count, _operation(op, tensor), _place(group, dst, "dst")
        ),
    )


@in_programs("tensor_list", _gathered_gradient)
def all_gather(tensor_list: list[Any], tensor: Any, group: Group | None = None, sync_op: bool = True) -> Task:
    """Appends the ranks' tensors, which have one shape, to an empty list; or sets those of a list of as
    many."""
    group = _group(group)
    gathered = empty_like(tensor, (group.nranks, *tensor.shape))
    given = view(tensor)

    def take():
        _take_parts(tensor_list, gathered, group.nranks, "all_gather")

    return _call(group, sync_op, _native.Call(_KIND.all_gather, given, view(gathered), given.count), take)


def _take_parts(tensor_list, parts, ranks, name):
    if not tensor_list:
        tensor_list.extend(parts[rank] for rank in range(ranks))
        return
    if len(tensor_list) != ranks:
        raise Error(
            "config",
            f"{name} with a list of {len(tensor_list)} arrays and {ranks} ranks",
            "give it an empty list",
        )
    for rank in range(ranks):
        copy(tensor_list[rank], parts[rank])


@in_programs("tensor", _scattered_gradient)
def reduce_scatter(
    tensor: Any,
    tensor_list: Sequence[Any],
    op: int = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task:
    """tensor = the ranks' tensor_list[this rank] reduced."""
    group = _group(group)
    _as_many(tensor_list, group, "reduce_scatter")
    target = view(tensor)
    return _call(
        group,
        sync_op,
        _native.Call(
            _KIND.reduce_scatter, view(join(tensor_list)), target, target.count, _operation(op, tensor)
        ),
    )


def _as_many(tensor_list, group, name):
    if len(tensor_list) != group.nranks:
        raise Error(
            "config",
            f"{name} with a list of {len(tensor_list)} arrays, and {group.name} has {group.nranks} ranks",
            "give it one array for each rank",
        )


@in_programs("tensor")
def scatter(
    tensor: Any,
    tensor_list: Sequence[Any] | None = None,
    src: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task:
    """tensor = rank src's tensor_list[this rank]; other ranks give no list."""
    group = _group(group)
    place = _place(group, src, "src")
    target = view(tensor)
    counts, sent = [0] * group.nranks, [0] * group.nranks
    counts[place] = target.count
    given = empty_like(tensor, (0,))
    if place == group.rank:
        _as_many(tensor_list or [], group, "scatter")
        assert tensor_list is not None
        given = join(tensor_list)
        sent = [target.count] * group.nranks
        if view(given).count != sum(sent):
            raise Error(
                "config",
                f"scatter of arrays of {view(given).count} elements together into {group.nranks} of "
                f"{target.count}",
                "give arrays of the shape of the one that is set",
            )
    return _call(
        group, sync_op, _native.Call(_KIND.all_to_all, view(given), target, counts=counts, send_counts=sent)
    )


def gather(
    tensor: Any,
    gather_list: list[Any] | None = None,
    dst: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task:
    """On rank dst: gather_list = the ranks' tensors, which have one shape; an empty list is filled."""
    group = _group(group)
    place = _place(group, dst, "dst")
    is_here = place == group.rank
    if is_here and gather_list is None:
        raise Error("config", f"gather on rank {dst} without gather_list", "give it a list there")
    given = view(tensor)
    counts = [given.count if is_here else 0] * group.nranks
    sent = [0] * group.nranks
    sent[place] = given.count
    taken = empty_like(tensor, (group.nranks, *tensor.shape) if is_here else (0,))

    def take():
        if is_here:
            _take_parts(gather_list, taken, group.nranks, "gather")

    return _call(
        group,
        sync_op,
        _native.Call(_KIND.all_to_all, given, view(taken), counts=counts, send_counts=sent),
        take,
    )


@in_programs("out_tensor_list")
def alltoall(
    in_tensor_list: Sequence[Any],
    out_tensor_list: list[Any],
    group: Group | None = None,
    sync_op: bool = True,
) -> Task:
    """out_tensor_list[r] = rank r's in_tensor_list[this rank]; an empty list is filled. All have one
    shape."""
    group = _group(group)
    _as_many(in_tensor_list, group, "alltoall")
    given = join(in_tensor_list)
    taken = empty_like(given, (group.nranks, *in_tensor_list[0].shape))
    values = view(given)

    def take():
        _take_parts(out_tensor_list, taken, group.nranks, "alltoall")

    return _call(
        group,
        sync_op,
        _native.Call(_KIND.all_to_all, values, view(taken), values.count // group.nranks),
        take,
    )


@in_programs("out_tensor")
def alltoall_single(
    in_tensor: Any,
    out_tensor: Any,
    in_split_sizes: Sequence[int] | None = None,
    out_split_sizes: Sequence[int] | None = None,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task:
    """The rows of in_tensor go to the ranks, in_split_sizes[r] of them to rank r (by default all equally
    many), and out_tensor gets theirs."""
    group = _group(group)
    given, taken = view(in_tensor), view(out_tensor)
    sent = _elements(in_tensor, given.count, in_split_sizes, group.nranks)
    got = _elements(out_tensor, taken.count, out_split_sizes, group.nranks)
    return _call(group, sync_op, _native.Call(_KIND.all_to_all, given, taken, counts=got, send_counts=sent))


def _elements(array, count, rows, ranks):
    rows = rows or [array.shape[0] // ranks] * ranks
    if len(rows) != ranks or sum(rows) != array.shape[0]:
        raise Error(
            "config", f"an array of {array.shape[0]} rows cannot be split as {list(rows)} among {ranks} ranks"
        )
    width = count // max(array.shape[0], 1)
    return [row * width for row in rows]


def barrier(group: Group | None = None) -> None:
    """Returns when every rank of the group has called it; at once in a process that takes the place of a
    rank, which has been there."""
    if the_world.is_new:
        return
    _call(_group(group), True, _native.Call(_KIND.barrier))


def wait(tensor: Any, group: Group | None = None, use_calc_stream: bool = True) -> None:
    """Nothing: calls have ended when they return, on GPUs too, and a Task is waited for by its wait()."""

"""Collective calls on objects: values that JSON has, bytes, arrays and tensors, in lists, tuples and dicts.

They travel as data (fleetrun/distributed/_objects.py). Other objects are pickled where all ranks say
allow_pickle=True: a pickle runs code of its sender. Without it an object that is not data is an
Error(config) on every rank, which names the rank and the type. Names and signatures are Paddle's.
"""

import numpy

from fleetrun import _native
from fleetrun._error import Error
from fleetrun._types import Any, Sequence
from fleetrun.distributed import collectives
from fleetrun.distributed._arrays import view
from fleetrun.distributed._objects import from_bytes, to_bytes
from fleetrun.distributed._world import Group, the_world

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list"]

_KIND = _native.CallKind


def all_gather_object(
    object_list: list[Any], obj: Any, group: Group | None = None, allow_pickle: bool = False
) -> None:
    """Appends the ranks' objects; a list of as many as there are ranks gets them in the place of its own."""
    group = _group(group)
    mine = _packed(obj, allow_pickle)
    counts = _lengths(len(mine), group)
    joined = numpy.empty(sum(counts), dtype=numpy.uint8)
    group.communicator.run(_native.Call(_KIND.all_gather, view(mine), view(joined), counts=counts))
    _give(object_list, _unpacked(joined, counts, group, allow_pickle), group)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int = 0,
    group: Group | None = None,
    allow_pickle: bool = False,
) -> None:
    """On rank dst: the ranks' objects are appended, or put into a list of as many as there are ranks."""
    group = _group(group)
    place = _place(group, dst, "dst")
    if group.rank == place and object_gather_list is None:
        raise Error("config", f"gather_object on rank {dst} without a list", "give it a list there")
    mine = _packed(obj, allow_pickle)
    counts = _lengths(len(mine), group)
    sent = [len(mine) if rank == place else 0 for rank in range(group.nranks)]
    if group.rank != place:
        counts = [0] * group.nranks
    joined = _exchange(group, mine, sent, counts)
    if mine[:1].tobytes() == b"E":
        _unpack(mine.tobytes(), the_world.rank, allow_pickle)
    if group.rank == place:
        assert object_gather_list is not None
        _give(object_gather_list, _unpacked(joined, counts, group, allow_pickle), group)


def broadcast_object_list(
    object_list: list[Any], src: int = 0, group: Group | None = None, allow_pickle: bool = False
) -> None:
    """object_list = that of rank `src`."""
    group = _group(group)
    is_mine = _place(group, src, "src") == group.rank
    mine = _packed(list(object_list) if is_mine else None, allow_pickle)
    length = numpy.array([len(mine)], dtype=numpy.int64)
    collectives.broadcast(length, src, group)
    content = mine if is_mine else numpy.empty(length[0], dtype=numpy.uint8)
    collectives.broadcast(content, src, group)
    received = _unpack(content.tobytes(), src, allow_pickle)
    if not is_mine:
        object_list[:] = received


def scatter_object_list(
    out_object_list: list[Any],
    in_object_list: Sequence[Any] | None = None,
    src: int = 0,
    group: Group | None = None,
    allow_pickle: bool = False,
) -> None:
    """out_object_list = [rank src's in_object_list[this rank]]."""
    group = _group(group)
    place = _place(group, src, "src")
    parts = [numpy.empty(0, dtype=numpy.uint8)] * group.nranks
    if group.rank == place:
        given = in_object_list or []
        if len(given) != group.nranks:
            raise Error(
                "config",
                f"scatter_object_list of {len(given)} objects, and {group.name} has {group.nranks} ranks",
                "give it one object for each rank",
            )
        parts = [_packed(each, allow_pickle) for each in given]
    lengths = numpy.array([len(part) for part in parts], dtype=numpy.int64)
    collectives.broadcast(lengths, src, group)
    sent = lengths.tolist() if group.rank == place else [0] * group.nranks
    counts = [int(lengths[group.rank]) if rank == place else 0 for rank in range(group.nranks)]
    received = _exchange(group, numpy.concatenate(parts), sent, counts)
    out_object_list[:] = [_unpack(received.tobytes(), src, allow_pickle)]


def _group(group):
    return the_world.default_group if group is None else group


def _place(group, rank, name):
    place = group.get_group_rank(rank)
    if place < 0:
        raise Error("config", f"{name}={rank} is not a rank of {group.name}, which has {group.ranks}")
    return place


def _packed(value, allow_pickle):
    """What is sent for an object: it, or why it cannot be, so that every rank learns that."""
    try:
        content = to_bytes(value, allow_pickle)
    except Error as error:
        content = b"E" + error.what.encode()
    return numpy.frombuffer(content, dtype=numpy.uint8).copy()


def _unpack(content, rank, allow_pickle):
    if content[:1] == b"E":
        raise Error(
            "config",
            f"rank {rank}: {content[1:].decode()}",
            "give values that JSON has, bytes and arrays, or allow_pickle=True on all ranks",
        )
    return from_bytes(content, allow_pickle)


def _unpacked(joined, counts, group, allow_pickle):
    parts = numpy.split(joined, numpy.cumsum(counts)[:-1])
    return [_unpack(part.tobytes(), rank, allow_pickle) for rank, part in zip(group.ranks, parts)]


def _give(object_list, objects, group):
    if len(object_list) == group.nranks:
        object_list[:] = objects
    else:
        object_list.extend(objects)


def _lengths(length, group):
    lengths: list[Any] = []
    collectives.all_gather(lengths, numpy.array([length], dtype=numpy.int64), group)
    return [int(each[0]) for each in lengths]


def _exchange(group, given, sent, counts):
    taken = numpy.empty(sum(counts), dtype=numpy.uint8)
    group.communicator.run(
        _native.Call(_KIND.all_to_all, view(given), view(taken), counts=counts, send_counts=sent)
    )
    return taken

"""What a process group tells of its calls: how many there were, and to functions that asked for it before and
after each."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as torch_distributed
from torch._C import _distributed_c10d as native

__all__ = ["Told", "told"]

# A method, PyTorch's name for its call, and which of its arguments are read, written, and say the other rank.
_CALLS = (
    ("allreduce", "ALLREDUCE", 0, None, None),
    ("allreduce_coalesced", "ALLREDUCE_COALESCED", 0, None, None),
    ("broadcast", "BROADCAST", 0, None, 1),
    ("reduce", "REDUCE", 0, None, 1),
    ("allgather", "ALLGATHER", 1, 0, None),
    ("allgather_coalesced", "ALLGATHER_COALESCED", 1, 0, None),
    ("_allgather_base", "ALLGATHER_BASE", 1, 0, None),
    ("all_gather_single", "ALLGATHER_BASE", 1, 0, None),
    ("allgather_into_tensor_coalesced", "ALLGATHER_INTO_TENSOR_COALESCED", 1, 0, None),
    ("all_gather_single_coalesced", "ALLGATHER_INTO_TENSOR_COALESCED", 1, 0, None),
    ("reduce_scatter", "REDUCE_SCATTER", 1, 0, None),
    ("_reduce_scatter_base", "REDUCE_SCATTER_BASE", 1, 0, None),
    ("reduce_scatter_single", "REDUCE_SCATTER_BASE", 1, 0, None),
    ("reduce_scatter_tensor_coalesced", "REDUCE_SCATTER_TENSOR_COALESCED", 1, 0, None),
    ("reduce_scatter_single_coalesced", "REDUCE_SCATTER_TENSOR_COALESCED", 1, 0, None),
    ("alltoall", "ALLTOALL", 1, 0, None),
    ("alltoall_base", "ALLTOALL_BASE", 1, 0, None),
    ("all_to_all_single", "ALLTOALL_BASE", 1, 0, None),
    ("gather", "GATHER", 1, 0, 2),
    ("scatter", "SCATTER", 1, 0, 2),
    ("barrier", "BARRIER", None, None, None),
    ("send", "SEND", 0, None, 1),
    ("recv", "RECV", None, 0, 1),
    ("recv_anysource", "RECV", None, 0, None),
)
_inner = threading.local()  # .is_call: within a call, which may make another one of these methods


class Told(torch_distributed.ProcessGroup):
    """A process group whose calls are told; `told` has to decorate the class that makes them."""

    supports_abort_hooks = True

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self._calls = 0
        self._told_calls = 0
        self._before: dict[int, Callable[[Any], None]] = {}
        self._after: dict[int, Callable[[Any], None]] = {}
        self._at_abort: dict[int, Callable[[], None]] = {}

    def _get_sequence_number_for_group(self) -> int:
        """How many calls this rank has begun."""
        return self._calls

    def register_pre_hook(self, hook_id: int, hook: Callable[[Any], None]) -> None:
        """Calls hook(PreHookArgs) before each call."""
        self._before[hook_id] = hook

    def unregister_pre_hook(self, hook_id: int) -> None:
        """No more."""
        self._before.pop(hook_id, None)

    def register_post_hook(self, hook_id: int, hook: Callable[[Any], None]) -> None:
        """Calls hook(PostHookArgs) when a call has been begun."""
        self._after[hook_id] = hook

    def unregister_post_hook(self, hook_id: int) -> None:
        """No more."""
        self._after.pop(hook_id, None)

    def register_abort_hook(self, hook_id: int, hook: Callable[[], None]) -> None:
        """Calls hook() when the group is aborted."""
        self._at_abort[hook_id] = hook

    def unregister_abort_hook(self, hook_id: int) -> None:
        """No more."""
        self._at_abort.pop(hook_id, None)

    def abort(self) -> None:
        """Calls the hooks of abort(), in the order of their numbers."""
        for _, hook in sorted(self._at_abort.items()):
            hook()

    def _tell(self, hooks, kind, name, **values):
        for _, hook in sorted(hooks.items()):
            args = kind()
            args.name = getattr(native.HookOpName, name)
            for key, value in values.items():
                setattr(args, key, value)
            hook(args)


def told(kind: type[Told]) -> type[Told]:
    """A decorator of a class: each of its calls is counted and told."""
    for method, *said in _CALLS:
        setattr(kind, method, _told(getattr(kind, method), *said))
    return kind


def _told(method, name, read, written, other):
    @functools.wraps(method)
    def inner(self: Any, *given: Any, **named: Any) -> Any:
        if getattr(_inner, "is_call", False):
            return method(self, *given, **named)
        self._calls += 1
        _inner.is_call = True
        try:
            if not (self._before or self._after):
                return method(self, *given, **named)
            said = {"op_id": self._told_calls, "async_op": _is_async(given, named)}
            self._told_calls += 1
            self._tell(
                self._before, native.PreHookArgs, name, **said, root=_root(other, given, named),
                input_tensors=_tensors(given, read), output_tensors=_tensors(given, written),
            )  # fmt: skip
            work = method(self, *given, **named)
            self._tell(self._after, native.PostHookArgs, name, **said, work=work)
            return work
        finally:
            _inner.is_call = False

    return inner


def _is_async(given, named):
    return all(getattr(each, "asyncOp", True) for each in (*given, *named.values()))


def _root(place, given, named):
    """The rank that a call names; -1: none."""
    for each in (*given, *named.values()):
        if hasattr(each, "rootRank"):
            return each.rootRank
    if place is not None and place < len(given):
        return given[place]
    return named.get("root", -1)


def _tensors(given, place):
    """Those of an argument; none where it has none."""
    found, left = [], [] if place is None or place >= len(given) else [given[place]]
    while left:
        each = left.pop(0)
        if isinstance(each, torch.Tensor):
            found.append(each)
        elif isinstance(each, (list, tuple)):
            left = [*each, *left]
    return found

"""Communication hooks, as torch.nn.parallel.DistributedDataParallel.register_comm_hook has them.

A hook gets a bucket of gradients and returns a future of what takes their place: the mean, where it is one.
PyTorch's own hooks that only average, as they are or in 16 bits, are done here; any other one is called, and
those of PyTorch's that exchange by themselves need torch.distributed.init_process_group().
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from fleetrun import _native
from fleetrun._error import Error
from fleetrun.distributed._arrays import view
from fleetrun.distributed.parallel.buckets import Bucket

__all__ = ["CommunicationHook", "GradBucket", "HookBucket", "hook_of"]

_KIND, _OPERATION = _native.CallKind, _native.Operation
_DEFAULTS = "torch.distributed.algorithms.ddp_comm_hooks.default_hooks"
# What PyTorch's own hooks of these names send.
_WIRES = {"allreduce_hook": None, "fp16_compress_hook": torch.float16, "bf16_compress_hook": torch.bfloat16}


@dataclass
class CommunicationHook:
    """call: the hook, None where only the type on the way is another one, which is `wire`."""

    call: Callable[[Any, GradBucket], Any] | None
    state: Any
    wire: torch.dtype | None = None

    @property
    def averages(self) -> bool:
        """Whether gradients are means over all ranks, whatever way they take; a hook that is called may leave
        ranks apart."""
        return self.call is None


def hook_of(state: object, hook: Callable[[Any, Any], Any]) -> CommunicationHook | None:
    """What register_comm_hook() was given; None for the plain mean. Throws: TypeError for what cannot be
    called."""
    if not callable(hook):
        raise TypeError(f"register_comm_hook: {type(hook).__name__} cannot be called; give it a function")
    module, name = getattr(hook, "__module__", ""), getattr(hook, "__name__", "")
    if module == _DEFAULTS and name in _WIRES and state is None:
        return CommunicationHook(None, None, _WIRES[name]) if _WIRES[name] else None
    if module.startswith("torch.distributed.") and not torch.distributed.is_initialized():
        raise Error(
            "config",
            f"register_comm_hook with {module}.{name}, which exchanges through torch.distributed, which has "
            "not been initialized",
            'call torch.distributed.init_process_group("gloo") first',
        )
    return CommunicationHook(hook, state)


class GradBucket:
    """What a hook gets: torch.distributed.GradBucket's methods."""

    def __init__(self, bucket: HookBucket) -> None:
        self._bucket = bucket

    def index(self) -> int:
        """Its number, in the order in which buckets are exchanged."""
        return self._bucket.index

    def buffer(self) -> torch.Tensor:
        """All gradients behind each other, in one dimension."""
        return self._bucket.buffer

    def set_buffer(self, buffer: torch.Tensor) -> None:
        """Puts another tensor of as many elements in the buffer's place."""
        self._bucket.buffer = buffer

    def gradients(self) -> list[torch.Tensor]:
        """The gradients as views of the buffer."""
        return self._bucket.parts()

    def parameters(self) -> list[torch.nn.Parameter]:
        """The parameters that they belong to."""
        return self._bucket.parameters

    def is_last(self) -> bool:
        """Whether it is the last one of a backward."""
        return self._bucket.is_last


class HookBucket(Bucket):
    """Gradients that a hook exchanges; which of them any rank has had the ranks tell each other beside it."""

    def __init__(
        self,
        parameters: list[torch.nn.Parameter],
        communicator: _native.Communicator,
        hook: CommunicationHook,
        keeps_views: bool,
    ) -> None:
        super().__init__(parameters, communicator, None, keeps_views)
        self._hook = hook
        self._future: Any = None
        self.index, self.is_last = 0, False
        self.buffer = self._gradients

    def parts(self) -> list[torch.Tensor]:
        """The buffer, parameter by parameter."""
        if self.buffer is self._gradients:
            return self._views
        sizes = [parameter.numel() for parameter in self.parameters]
        return [
            part.view(parameter.shape) for part, parameter in zip(self.buffer.split(sizes), self.parameters)
        ]

    def start(self) -> None:
        """Calls the hook."""
        self._complete()
        self.buffer = self._gradients
        assert self._hook.call is not None
        self._future = self._hook.call(self._hook.state, GradBucket(self))
        if not hasattr(self._future, "wait"):
            raise Error(
                "config",
                f"a communication hook returned {type(self._future).__name__}, not a future",
                "return a torch.futures.Future of a tensor",
            )

    def finish(self) -> int:
        """Waits for what the hook returned."""
        result = self._future.wait()
        self._future = None
        if isinstance(result, (list, tuple)) and len(result) == 1:
            result = result[0]
        if not isinstance(result, torch.Tensor) or result.numel() != self._gradients.numel():
            raise Error(
                "config",
                f"a communication hook's future holds {_shown(result)}, and the bucket has "
                f"{self._gradients.numel()} elements",
                "return a future of one tensor of as many",
            )
        flags = self._flags.to("cpu", torch.float32)
        values = view(flags)
        self._communicator.run(_native.Call(_KIND.all_reduce, values, values, values.count, _OPERATION.max))
        self._flags.copy_(flags)
        if result.data_ptr() != self._gradients.data_ptr():
            self._gradients.copy_(result.reshape(-1))
        return self._give()

    def exchange(self) -> int:
        """start() and finish()."""
        self.start()
        return self.finish()


def _shown(result):
    if isinstance(result, torch.Tensor):
        return f"a tensor of {result.numel()} elements"
    return type(result).__name__

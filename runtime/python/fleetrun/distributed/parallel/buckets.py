"""Buckets: gradients that are exchanged together, and what is exchanged in their place.

A bucket is filled while backward goes on, started when the buckets before it are, and finished at the end of
backward. All ranks start and finish the same buckets in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from fleetrun import _native
from fleetrun._types import Any
from fleetrun.distributed._arrays import current_stream, view

if TYPE_CHECKING:
    pass

__all__ = ["Bucket", "RowBucket"]

_KIND, _OPERATION = _native.CallKind, _native.Operation


class Bucket:
    """Dense gradients of one type, behind each other in one tensor that the parameters' gradients are views
    of; behind them a flag for each, above 0 after the exchange where any rank had a gradient."""

    def __init__(
        self, parameters: list[torch.nn.Parameter], communicator: _native.Communicator, half_precision: bool
    ) -> None:
        sizes = [parameter.numel() for parameter in parameters]
        count = sum(sizes)
        first = parameters[0]
        self.parameters = parameters
        self._communicator = communicator
        self._flat = torch.zeros(count + len(parameters), dtype=first.dtype, device=first.device)
        self._flags = self._flat[count:]
        starts = [sum(sizes[:slot]) for slot in range(len(sizes))]
        self._views = [
            self._flat[start : start + size].view(parameter.shape)
            for parameter, start, size in zip(parameters, starts, sizes)
        ]
        self._half = self._flat.to(torch.float16) if half_precision and first.dtype == torch.float32 else None
        values = view(self._flat if self._half is None else self._half)
        self._call = _native.Call(_KIND.all_reduce, values, values, values.count, _OPERATION.avg)
        self._started: Any = None
        self._ready: set[Any] = set()

    def is_full(self) -> bool:
        """Whether every gradient is there."""
        return len(self._ready) == len(self.parameters)

    def take(self, slot: int) -> None:
        """Takes the gradient of a parameter into the bucket."""
        parameter, place = self.parameters[slot], self._views[slot]
        if parameter.grad is not place:
            place.copy_(parameter.grad)
            parameter.grad = place
        self._ready.add(slot)

    def start(self) -> None:
        """Starts the exchange; gradients that have not come are zero, or what an earlier backward left."""
        self._complete()
        self._started = self._communicator.start(self._call, current_stream(self._flat))

    def _complete(self):
        missing = [slot for slot in range(len(self.parameters)) if slot not in self._ready]
        self._flags.fill_(1.0)
        for slot in missing:
            if self.parameters[slot].grad is None:
                self._views[slot].zero_()
                self._flags[slot] = 0.0
            else:
                self.take(slot)
        if self._half is not None:
            self._half.copy_(self._flat)

    def finish(self) -> None:
        """Waits for the exchange; the parameters' gradients are then the means."""
        self._started.wait()
        self._started = None
        self._give()

    def exchange(self) -> None:
        """start() and finish(), without another thread in between where the host makes the call."""
        if self._flat.is_cuda:
            self.start()
            return self.finish()
        self._complete()
        self._communicator.run(self._call)
        return self._give()

    def _give(self):
        if self._half is not None:
            self._flat.copy_(self._half)
        for slot, parameter in enumerate(self.parameters):
            if parameter.grad is None and self._flags[slot] > 0:
                parameter.grad = self._views[slot]
        self._ready.clear()


class RowBucket:
    """The sparse gradient of one parameter: the ranks' rows behind each other, divided by the number of
    ranks."""

    def __init__(self, parameter: torch.nn.Parameter, communicator: _native.Communicator) -> None:
        self.parameters = [parameter]
        self._communicator = communicator
        self._is_ready = False

    def is_full(self) -> bool:
        """Whether the gradient is there."""
        return self._is_ready

    def take(self, slot: int) -> None:
        """Takes the gradient."""
        self._is_ready = True

    def start(self) -> None:
        """Nothing: how many rows there are the ranks tell each other in finish()."""

    def finish(self) -> None:
        """Exchanges the rows."""
        parameter = self.parameters[0]
        self._is_ready = False
        gradient = parameter.grad
        if gradient is None:
            rows = torch.empty((0,), dtype=torch.int64, device=parameter.device)
            values = parameter.detach().new_empty((0, *parameter.shape[1:]))
        else:
            gradient = gradient.coalesce() if gradient.is_sparse else gradient.to_sparse(1)
            rows, values = gradient.indices()[0].contiguous(), gradient.values().contiguous()
        counts = self._gather(torch.tensor([rows.numel()]), [1] * self._communicator.size).tolist()
        if sum(counts) == 0 and parameter.grad is None:
            return
        width = parameter[0].numel()
        all_rows = self._gather(rows, counts)
        all_values = self._gather(values, [count * width for count in counts]).view(-1, *parameter.shape[1:])
        all_values /= self._communicator.size
        parameter.grad = torch.sparse_coo_tensor(all_rows.unsqueeze(0), all_values, parameter.shape)

    def _gather(self, values, counts):
        gathered = values.new_empty(sum(counts))
        self._communicator.run(_native.Call(_KIND.all_gather, view(values), view(gathered), counts=counts))
        return gathered

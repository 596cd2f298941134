"""Buckets: gradients that are exchanged together, and what is exchanged in their place.

A bucket is filled while backward goes on, started when the buckets before it are, and finished at the end of
backward. All ranks start and finish the same buckets in the same order. A muted one takes part with zeros,
and leaves the gradients of this rank as they are: for a backward that was abandoned, or is another rank's.
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


def _numbers(parameter):
    """How many real numbers a parameter has, and their type."""
    if parameter.is_complex():
        return 2 * parameter.numel(), torch.view_as_real(parameter.detach()).dtype
    return parameter.numel(), parameter.dtype


def _place(flat, parameter):
    """The part of a flat tensor as a gradient of a parameter."""
    if parameter.is_complex():
        return torch.view_as_complex(flat.view(*parameter.shape, 2))
    return flat.view(parameter.shape)


class Bucket:
    """Dense gradients of one type, behind each other in one tensor; behind them a flag for each, above 0
    after the exchange where a backward of any rank has used the parameter. The parameters' gradients are
    views of that tensor with `keeps_views`, else of their own memory. wire: the type that is sent, None: the
    gradients' own."""

    def __init__(
        self,
        parameters: list[torch.nn.Parameter],
        communicator: _native.Communicator,
        wire: torch.dtype | None = None,
        keeps_views: bool = True,
    ) -> None:
        sizes = [_numbers(parameter)[0] for parameter in parameters]
        count = sum(sizes)
        dtype, device = _numbers(parameters[0])[1], parameters[0].device
        self.parameters = parameters
        self.scale = 1.0
        self._keeps_views = keeps_views
        self._communicator = communicator
        self._flat = torch.zeros(count + len(parameters), dtype=dtype, device=device)
        self._flags = self._flat[count:]
        self._gradients = self._flat[:count]
        starts = [sum(sizes[:slot]) for slot in range(len(sizes))]
        self._views = [
            _place(self._flat[start : start + size], parameter)
            for parameter, start, size in zip(parameters, starts, sizes)
        ]
        sends = self._flat if wire is None else self._flat.to(wire)
        self._wire = None if sends is self._flat else sends
        values = view(sends)
        self._call = _native.Call(_KIND.all_reduce, values, values, values.count, _OPERATION.avg)
        self._started: Any = None
        self._ready: set[int] = set()
        self._used_here: set[int] = set()
        self._is_muted = False

    def is_full(self) -> bool:
        """Whether every gradient is there."""
        return len(self._ready) == len(self.parameters)

    def use(self, slot: int) -> None:
        """A backward whose gradients stay here has used a parameter."""
        self._used_here.add(slot)

    def take(self, slot: int) -> None:
        """Takes the gradient of a parameter into the bucket."""
        self._take_in(slot)
        self._ready.add(slot)

    def _take_in(self, slot):
        parameter, place = self.parameters[slot], self._views[slot]
        if parameter.grad is not place:
            place.copy_(parameter.grad)
            if self._keeps_views:
                parameter.grad = place

    def mute(self) -> None:
        """The exchange that is under way, or comes, is not one of this rank's gradients."""
        self._is_muted = True

    def start(self) -> None:
        """Starts the exchange; gradients that have not come are zero, or what was there before."""
        self._complete()
        self._started = self._communicator.start(self._call, current_stream(self._flat))

    def _complete(self):
        if self._is_muted:
            self._flat.zero_()
        else:
            missing = [slot for slot in range(len(self.parameters)) if slot not in self._ready]
            self._flags.fill_(1.0)
            for slot in missing:
                if self.parameters[slot].grad is None:
                    self._views[slot].zero_()
                else:
                    self._take_in(slot)
                # PyTorch's gives a gradient that a script has set to the others, too, and takes the mean
                # where a rank has used the parameter, or it lies in the bucket.
                has_mean = self._keeps_views and self.parameters[slot].grad is not None
                self._flags[slot] = float(has_mean or slot in self._used_here)
        if self._wire is not None:
            self._wire.copy_(self._flat)

    def finish(self) -> int:
        """Waits for the exchange; the parameters' gradients are then the means. Returns their number."""
        self._started.wait()
        self._started = None
        return self._give()

    def exchange(self) -> int:
        """start() and finish(), without another thread in between where the host makes the call."""
        if self._flat.is_cuda:
            self.start()
            return self.finish()
        self._complete()
        self._communicator.run(self._call)
        return self._give()

    def _give(self):
        """Hands the means out; those of parameters that no rank had used stay as they are."""
        if self._wire is not None:
            self._flat.copy_(self._wire)
        if self.scale != 1.0:
            self._gradients.mul_(self.scale)
        used = self._used()
        self._ready.clear()
        self._used_here.clear()
        if self._is_muted:
            self._is_muted = False
            return len(used)
        for slot in used:
            parameter, place = self.parameters[slot], self._views[slot]
            if self._keeps_views:
                parameter.grad = place
            elif parameter.grad is None or parameter.grad.layout != torch.strided:
                parameter.grad = place.clone()
            else:
                parameter.grad.copy_(place)
        return len(used)

    def _used(self):
        """The slots of parameters that any rank has used."""
        if self.is_full() and not self._is_muted:
            return range(len(self.parameters))
        return [slot for slot, flag in enumerate(self._flags.tolist()) if flag > 0]


class LoneGradient:
    """A bucket of one parameter, whose gradient is exchanged in a way of its own."""

    def __init__(self, parameter: torch.nn.Parameter, communicator: _native.Communicator) -> None:
        self.parameters = [parameter]
        self.scale = 1.0
        self._communicator = communicator
        self._is_ready = False
        self._is_muted = False

    def is_full(self) -> bool:
        """Whether the gradient is there."""
        return self._is_ready

    def use(self, slot: int) -> None:
        """Nothing: a gradient that is there is given to the others, whatever it is from."""

    def take(self, slot: int) -> None:
        """Takes the gradient."""
        self._is_ready = True

    def mute(self) -> None:
        """This rank has no gradient in the exchange that is under way, or comes, and takes none."""
        self._is_muted = True


class RowBucket(LoneGradient):
    """The sparse gradient of one parameter: the ranks' rows, those of a place added up, divided by the number
    of ranks."""

    def start(self) -> None:
        """Nothing: how many rows there are the ranks tell each other in finish()."""

    def finish(self) -> int:
        """Exchanges the rows. Returns the number of gradients, 1 or 0."""
        parameter = self.parameters[0]
        is_muted, self._is_muted, self._is_ready = self._is_muted, False, False
        gradient = None if is_muted else parameter.grad
        if gradient is None:
            rows = torch.empty((0,), dtype=torch.int64, device=parameter.device)
            values = parameter.detach().new_empty((0, *parameter.shape[1:]))
        else:
            gradient = gradient.coalesce() if gradient.is_sparse else gradient.to_sparse(1)
            rows, values = gradient.indices()[0].contiguous(), gradient.values().contiguous()
        counts = self._gather(torch.tensor([rows.numel()]), [1] * self._communicator.size).tolist()
        if sum(counts) == 0 and gradient is None:
            return 0
        width = parameter[0].numel()
        all_rows = self._gather(rows, counts)
        all_values = self._gather(values, [count * width for count in counts]).view(-1, *parameter.shape[1:])
        all_values *= self.scale / self._communicator.size
        if not is_muted:
            found = torch.sparse_coo_tensor(all_rows.unsqueeze(0), all_values, parameter.shape)
            parameter.grad = found.coalesce()
        return 1

    def _gather(self, values, counts):
        gathered = values.new_empty(sum(counts))
        self._communicator.run(_native.Call(_KIND.all_gather, view(values), view(gathered), counts=counts))
        return gathered

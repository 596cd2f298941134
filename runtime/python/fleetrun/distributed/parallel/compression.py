"""Deep gradient compression: of a large gradient only the largest values are sent, the rest is kept for later
steps.

    u = momentum * u + gradient      v = v + u      the largest |v| are sent; there u = v = 0

so that momentum is corrected for values that wait, and what was sent moves no further (factor masking).
Before rampup_begin_step all of the gradient is sent; from then on the share that is kept back goes through
the list `sparsity`, in rampup_step steps; its last value stays. The optimizer's own momentum is then not
applied to these parameters.
Source: Lin et al., Deep Gradient Compression, 2018; defaults and thresholds are Paddle's
(DGCMomentumOptimizer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from fleetrun import _native
from fleetrun._types import Any, Sequence
from fleetrun.distributed._arrays import view
from fleetrun.distributed.parallel.buckets import LoneGradient

if TYPE_CHECKING:
    pass

__all__ = ["CompressedBucket", "Compression", "LEAST_VALUES"]

_KIND, _OPERATION = _native.CallKind, _native.Operation

# Smaller gradients are sent whole.
LEAST_VALUES = 16384


class Compression:
    """Which share of a gradient is kept back in which step. momentum: the optimizer's, set by
    distribute_optimizer."""

    def __init__(self, begin_step: int, ramp_steps: int, sparsity: Sequence[float]) -> None:
        self._begin = begin_step
        self._ramp = ramp_steps
        self._sparsity = sparsity
        self.momentum = 0.0
        self._step = 0

    def fits(self, parameter: torch.nn.Parameter) -> bool:
        """Whether a parameter's gradient is compressed: float32, and large."""
        return parameter.numel() >= LEAST_VALUES and parameter.dtype == torch.float32

    @property
    def was_active(self) -> bool:
        """Whether the gradients that were exchanged last are compressed."""
        return self._step > self._begin

    @property
    def is_active(self) -> bool:
        """Whether this step's gradients are compressed."""
        return self._step >= self._begin

    @property
    def sparsity(self) -> float:
        """The share of values that this step keeps back."""
        place = (self._step - self._begin) * len(self._sparsity) // self._ramp
        return self._sparsity[min(max(place, 0), len(self._sparsity) - 1)]

    def step(self) -> None:
        """The next step begins."""
        self._step += 1


class CompressedBucket(LoneGradient):
    """One large gradient."""

    def __init__(
        self, parameter: torch.nn.Parameter, communicator: _native.Communicator, compression: Compression
    ) -> None:
        super().__init__(parameter, communicator)
        self._compression = compression
        self._mean = torch.zeros(parameter.numel(), dtype=parameter.dtype, device=parameter.device)
        self._sums: Any = None
        self._waiting: Any = None
        self._started: list[Any] = []

    def start(self) -> None:
        """Starts the exchange of all values, or of the largest."""
        gradient = None if self._is_muted else self.parameters[0].grad
        gradient = torch.zeros_like(self._mean) if gradient is None else gradient.detach().reshape(-1)
        if not self._compression.is_active:
            self._mean.copy_(gradient)
            values = view(self._mean)
            self._started = [
                self._communicator.start(
                    _native.Call(_KIND.all_reduce, values, values, values.count, _OPERATION.avg)
                )
            ]
            return
        if self._sums is None:
            self._sums, self._waiting = torch.zeros_like(self._mean), torch.zeros_like(self._mean)
        self._sums.mul_(self._compression.momentum).add_(gradient)
        self._waiting.add_(self._sums)
        count = max(1, round(self._waiting.numel() * (1.0 - self._compression.sparsity)))
        places = torch.topk(self._waiting.abs(), count, sorted=False).indices
        self._sent = [places, self._waiting[places]]
        self._sums[places] = 0.0
        self._waiting[places] = 0.0
        self._got = [part.new_empty((self._communicator.size, count)) for part in self._sent]
        self._started = [
            self._communicator.start(_native.Call(_KIND.all_gather, view(sent), view(got), count))
            for sent, got in zip(self._sent, self._got)
        ]

    def finish(self) -> int:
        """Waits for the exchange; the parameter's gradient is then the mean of what was sent. Returns 1."""
        for started in self._started:
            started.wait()
        self._started = []
        self._is_ready = False
        parameter = self.parameters[0]
        if self._compression.is_active:
            self._mean.zero_()
            for places, values in zip(*self._got):
                self._mean.index_add_(0, places, values)
            self._mean /= self._communicator.size
        self._mean *= self.scale
        is_muted, self._is_muted = self._is_muted, False
        if not is_muted:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad.copy_(self._mean.view(parameter.shape))
        return 1

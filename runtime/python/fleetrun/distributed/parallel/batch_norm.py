"""torch.nn.SyncBatchNorm over the ranks of a job: PyTorch's own asks torch.distributed, and normalizes by the
statistics of its rank alone where that has not been initialized.

forward   the ranks' means, squared deviations and counts of each channel are gathered and joined
backward  with n examples of all ranks, x̂ the normalized input and g its gradient:
          dx = (g - Σg / n - x̂ Σ(g x̂) / n) weight / σ, sums over all ranks
Weights get the gradients of this rank's examples; they are averaged as all gradients.
"""

from __future__ import annotations

from typing import Any

import torch

from fleetrun import _native
from fleetrun._error import Error
from fleetrun.distributed._arrays import view
from fleetrun.distributed._world import Group, the_world

__all__ = ["SyncBatchNorm", "synchronize_batch_norms"]

_KIND = _native.CallKind


def synchronize_batch_norms(module: torch.nn.Module, group: Group) -> None:
    """Makes the SyncBatchNorm of a module those of `group`; their parameters and buffers stay. Throws:
    Error(config) for one with a process_group, and for classes derived from it."""
    for name, child in module.named_modules():
        if not isinstance(child, torch.nn.SyncBatchNorm):
            continue
        if type(child) not in (torch.nn.SyncBatchNorm, SyncBatchNorm):
            raise Error(
                "config",
                f"'{name}' is a {type(child).__name__}, derived from SyncBatchNorm: its statistics would be "
                "of its rank alone",
                "use torch.nn.SyncBatchNorm itself, or BatchNorm",
            )
        if child.process_group is not None:
            raise Error(
                "config",
                f"'{name}' is a SyncBatchNorm with a process_group of torch.distributed",
                "leave it out: it synchronizes over the ranks of the model",
            )
        child.__class__ = SyncBatchNorm
        child.group_id = group.id


class SyncBatchNorm(torch.nn.SyncBatchNorm):
    """Normalizes by the statistics of all ranks' examples together. Shapes and state_dict are
    torch.nn.SyncBatchNorm's; inputs lie in the host's memory or on a GPU."""

    group_id: int = 0

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """As torch.nn.SyncBatchNorm.forward."""
        group = the_world.join().groups[self.group_id]
        if not self.training or group.nranks == 1:
            return torch.nn.modules.batchnorm._BatchNorm.forward(self, input)
        self._check_input_dim(input)
        self._check_non_zero_input_channels(input)
        result, mean, variance, count = _Normalized.apply(
            input, self.weight, self.bias, self.eps, group.communicator
        )
        if self.track_running_stats and self.running_mean is not None:
            self._follow(mean, variance, count)
        return result

    @torch.no_grad()
    def _follow(self, mean, variance, count):
        self.num_batches_tracked.add_(1)
        share = self.momentum if self.momentum is not None else 1.0 / float(self.num_batches_tracked)
        unbiased = variance * (count / (count - 1.0)) if count > 1 else variance
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_(unbiased.to(self.running_var.dtype), share)


class _Normalized(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, values: Any, weight: Any, bias: Any, eps: float, communicator: Any) -> Any:
        """(normalized values, mean, biased variance, count of all ranks)"""
        wide = values.to(torch.promote_types(values.dtype, torch.float32))
        axes = [axis for axis in range(wide.dim()) if axis != 1]
        count = wide.numel() // wide.shape[1]
        mean = wide.sum(axes) / max(count, 1)
        deviations = (wide - _spread(mean, wide)).square().sum(axes)
        mine = torch.cat([mean, deviations, mean.new_tensor([float(count)])])
        every = mine.new_empty((communicator.size, mine.numel()))
        communicator.run(_native.Call(_KIND.all_gather, view(mine), view(every), mine.numel()))
        channels = wide.shape[1]
        means, squares, counts = every[:, :channels], every[:, channels:-1], every[:, -1:]
        total = float(counts.sum())
        mean = (means * counts).sum(0) / total
        variance = (squares.sum(0) + (counts * (means - mean).square()).sum(0)) / total
        scale = torch.rsqrt(variance + eps)
        context.save_for_backward(values, weight, mean, scale)
        context.total, context.communicator = total, communicator
        context.bias_type = None if bias is None else bias.dtype
        result = (wide - _spread(mean, wide)) * _spread(scale, wide)
        if weight is not None:
            result = result * _spread(weight, wide)
        if bias is not None:
            result = result + _spread(bias, wide)
        context.mark_non_differentiable(mean, variance)
        return result.to(values.dtype), mean, variance, total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(context: Any, gradient: Any, *_: Any) -> Any:
        """The gradients of values, weight and bias."""
        values, weight, mean, scale = context.saved_tensors
        wide = gradient.to(mean.dtype)
        normalized = (values.to(mean.dtype) - _spread(mean, wide)) * _spread(scale, wide)
        axes = [axis for axis in range(wide.dim()) if axis != 1]
        mine = torch.stack([wide.sum(axes), (wide * normalized).sum(axes)])
        sums = mine.clone()
        numbers = view(sums)
        context.communicator.run(_native.Call(_KIND.all_reduce, numbers, numbers, numbers.count))
        sums /= context.total
        factor = scale if weight is None else scale * weight
        of_values = (wide - _spread(sums[0], wide) - normalized * _spread(sums[1], wide)) * _spread(
            factor, wide
        )
        of_weight = None if weight is None else mine[1].to(weight.dtype)
        of_bias = None if context.bias_type is None else mine[0].to(context.bias_type)
        return of_values.to(values.dtype), of_weight, of_bias, None, None


def _spread(channels, values):
    """One number for each channel, in the shape of the values."""
    return channels.view(1, -1, *([1] * (values.dim() - 2)))

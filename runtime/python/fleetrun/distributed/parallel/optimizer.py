"""distribute_optimizer: a torch optimizer that is told of the others.

With local SGD the ranks train apart and average their parameters every k_steps steps: s being the parameters
of the last average, d = s - p of each rank, p = s - mean(d). Up to begin_step they do so in every step, which
is synchronous SGD. The adaptive form chooses the number of steps after each average, from 1 to 16:
ceil(sqrt(rate0 * loss / (rate * loss0) * k_steps)), rate0 and loss0 being those of the first step. Source:
document 004, section 3; Lin et al., 2018 and Wang and Joshi, 2019.
"""

from __future__ import annotations

import math

import torch

from fleetrun import _native
from fleetrun._error import Error
from fleetrun._types import Any, Variable
from fleetrun.distributed._arrays import view
from fleetrun.distributed._world import the_world
from fleetrun.distributed.parallel.options import ParallelOptions

__all__ = ["distribute_optimizer", "LocalSteps", "MOST_LOCAL_STEPS"]

_KIND, _OPERATION = _native.CallKind, _native.Operation
MOST_LOCAL_STEPS = 16


def distribute_optimizer(optimizer: Any, options: ParallelOptions) -> Any:
    """Makes `optimizer` step as `options` say, and returns it."""
    kind = type(optimizer)
    if options.local_steps is not None or options.compression is not None:
        _check_linear(
            optimizer, "local SGD" if options.local_steps is not None else "deep gradient compression"
        )
    optimizer._fleetrun = _Steps(optimizer, options)
    optimizer.__class__ = type(kind.__name__, (_Distributed, kind), {"__module__": kind.__module__})
    return optimizer


def _check_linear(optimizer, what):
    """Throws: Error(config) for an optimizer whose steps cannot be averaged as its gradients can."""
    if not isinstance(optimizer, torch.optim.SGD):
        raise Error(
            "config",
            f"{what} with {type(optimizer).__name__}: it is for SGD, with or without momentum",
            "use torch.optim.SGD, or turn it off",
        )


class _Distributed(torch.optim.Optimizer):
    """What every distributed optimizer has besides its own."""

    _fleetrun: _Steps

    def step(self, closure=None):
        """The optimizer's step, and what the strategy does before and after it."""
        return self._fleetrun.step(super().step, closure)

    def observe(self, loss):
        """Tells the loss of the step that comes: adaptive local SGD chooses its steps by it."""
        self._fleetrun.loss = float(loss.detach()) if isinstance(loss, torch.Tensor) else float(loss)

    def synchronize(self):
        """With local SGD: averages the parameters now, as after the last step of a training. Every rank calls
        it."""
        self._fleetrun.synchronize()

    def minimize(self, loss):
        """backward, and a step."""
        self.observe(loss)
        loss.backward()
        self.step()

    def clear_grad(self):
        """No parameter has a gradient any more: zero_grad(), as Paddle calls it."""
        self.zero_grad()


class _Steps:
    """The steps of one optimizer."""

    def __init__(self, optimizer, options):
        self.loss: Any = None
        self._optimizer = optimizer
        self._compression = options.compression if the_world.size > 1 else None
        if self._compression is not None:
            self._compression.momentum = optimizer.param_groups[0]["momentum"]
        local = options.local_steps if the_world.size > 1 else None
        self._local = LocalSteps(optimizer, **local) if local is not None else None

    def step(self, apply, closure):
        """`apply` with what belongs to it."""
        if self._local is not None:
            self._local.before()
        self._drop_momentum()
        result = apply(closure) if closure is not None else apply()
        if self._local is not None:
            self._local.after(self.loss if self.loss is not None else result)
        self.loss = None
        return result

    def synchronize(self):
        """Averages what local steps have moved."""
        if self._local is not None:
            self._local.synchronize()

    def _drop_momentum(self):
        """Compression has applied it to the gradients already."""
        compression = self._compression
        if compression is None or not compression.was_active:
            return
        for group in self._optimizer.param_groups:
            for parameter in group["params"]:
                if compression.fits(parameter):
                    self._optimizer.state[parameter].pop("momentum_buffer", None)


class LocalSteps:
    """Averages parameters every so many steps."""

    def __init__(self, optimizer: Any, k_steps: int, begin_step: int, is_adaptive: bool) -> None:
        for name, value in (("k_steps", k_steps), ("begin_step", begin_step)):
            if value < 1:
                raise Error("config", f"local SGD with {name}={value}", "it is at least 1")
        self.k_steps = k_steps
        self._first_k_steps = k_steps
        self._begin = begin_step
        self._is_adaptive = is_adaptive
        self._optimizer = optimizer
        self._step = 0
        self._last = 0  # the step of the last average
        self._first: Any = None  # rate and loss of the first step
        self._snapshot: Any = None

    @property
    def _parameters(self):
        return [parameter for group in self._optimizer.param_groups for parameter in group["params"]]

    def before(self) -> None:
        """Before the local step."""
        if self._snapshot is None:
            self._snapshot = self._flat()

    def after(self, loss: Variable) -> None:
        """After the local step."""
        self._step += 1
        if self._is_adaptive and self._step == 1:
            self._first = self._rate_and_loss(loss)
        if self._step > self._begin and self._step - self._last < self.k_steps:
            return
        self._last = self._step
        self._average()
        if self._is_adaptive and self._step > self._begin:
            self._adapt(*self._rate_and_loss(loss))

    def synchronize(self) -> None:
        """The average, out of turn."""
        if self._snapshot is not None and self._last != self._step:
            self._last = self._step
            self._average()

    def _flat(self):
        with torch.no_grad():
            return torch.cat([parameter.detach().reshape(-1) for parameter in self._parameters])

    @torch.no_grad()
    def _average(self):
        moved = self._snapshot - self._flat()
        values = view(moved)
        the_world.default_group.communicator.run(
            _native.Call(_KIND.all_reduce, values, values, values.count, _OPERATION.avg)
        )
        self._snapshot -= moved
        start = 0
        for parameter in self._parameters:
            parameter.copy_(self._snapshot[start : start + parameter.numel()].view(parameter.shape))
            start += parameter.numel()

    def _rate_and_loss(self, loss):
        if loss is None:
            raise Error(
                "config",
                "adaptive local SGD does not know the loss",
                "call optimizer.observe(loss) before optimizer.step()",
            )
        mean = torch.tensor([float(loss)], dtype=torch.float64)
        values = view(mean)
        the_world.default_group.communicator.run(
            _native.Call(_KIND.all_reduce, values, values, values.count, _OPERATION.avg)
        )
        return self._optimizer.param_groups[0]["lr"], float(mean)

    def _adapt(self, rate, loss):
        first_rate, first_loss = self._first
        ratio = first_rate * loss / (rate * first_loss) if rate * first_loss > 0 else 0.0
        steps = math.ceil(math.sqrt(ratio * self._first_k_steps)) if math.isfinite(ratio) else 1
        self.k_steps = min(max(steps, 1), MOST_LOCAL_STEPS)

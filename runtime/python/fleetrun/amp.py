"""Mixed precision for PyTorch modules: auto_cast, and a GradScaler on which all ranks agree.

Names and arguments are Paddle's; defaults are those of DistributedStrategy.amp_configs: the loss is
multiplied by 32768, by twice as much after 1000 good steps in a row, and by 0.8 of it after 2 bad ones. A
step is bad when a gradient of any rank is infinite or no number: then no rank's optimizer steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fleetrun import _lazy
from fleetrun._error import Error

if TYPE_CHECKING:
    import torch

__all__ = ["auto_cast", "GradScaler"]


def auto_cast(
    enable: bool = True,
    custom_white_list: Any = None,
    custom_black_list: Any = None,
    level: str = "O1",
    dtype: str = "float16",
) -> torch.autocast:
    """torch.autocast of the device that torch would compute on: GPUs in `dtype`, CPUs in bfloat16. level:
    "O1"."""
    import torch

    from fleetrun._arguments import refuse

    refuse(
        "paddle.amp.auto_cast",
        custom_white_list=(custom_white_list, None),
        custom_black_list=(custom_black_list, None),
        level=(level, "O1"),
    )
    types = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    if dtype not in types:
        raise Error("config", f"paddle.amp.auto_cast(dtype={dtype!r})", "use 'float16' or 'bfloat16'")
    if torch.cuda.is_available():
        return torch.autocast("cuda", dtype=types[dtype], enabled=enable)
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=enable)


class GradScaler:
    """Multiplies the loss, so that small gradients are not lost in float16, and divides the gradients before
    the step.

        scaled = scaler.scale(loss)
        scaled.backward()
        scaler.step(optimizer)
        scaler.update()

    use_dynamic_loss_scaling=False: the factor stays (static loss scaling). enable=False: nothing is scaled or
    looked at.
    """

    def __init__(
        self,
        enable: bool = True,
        init_loss_scaling: float = 32768.0,
        incr_ratio: float = 2.0,
        decr_ratio: float = 0.8,
        incr_every_n_steps: int = 1000,
        decr_every_n_nan_or_inf: int = 2,
        use_dynamic_loss_scaling: bool = True,
    ) -> None:
        for name, value, is_right in (
            ("init_loss_scaling", init_loss_scaling, init_loss_scaling > 0),
            ("incr_ratio", incr_ratio, incr_ratio > 1),
            ("decr_ratio", decr_ratio, 0 < decr_ratio < 1),
            ("incr_every_n_steps", incr_every_n_steps, incr_every_n_steps >= 1),
            ("decr_every_n_nan_or_inf", decr_every_n_nan_or_inf, decr_every_n_nan_or_inf >= 1),
        ):
            if not is_right:
                raise Error(
                    "config",
                    f"GradScaler({name}={value!r})",
                    "init_loss_scaling is above 0, incr_ratio above 1, "
                    "decr_ratio between 0 and 1, the numbers of steps at least 1",
                )
        self._enable = bool(enable)
        self._scale = float(init_loss_scaling)
        self._init_scale = float(init_loss_scaling)
        self._incr_ratio, self._decr_ratio = float(incr_ratio), float(decr_ratio)
        self._incr_every, self._decr_every = int(incr_every_n_steps), int(decr_every_n_nan_or_inf)
        self._is_dynamic = bool(use_dynamic_loss_scaling)
        self._good_steps = self._bad_steps = 0
        self._found: dict[Any, Any] = {}  # optimizer: whether its gradients are bad, from unscale_ to update

    def scale(self, var: torch.Tensor) -> torch.Tensor:
        """The loss, multiplied."""
        return var * self._scale if self._enable else var

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Divides the gradients of `optimizer`, and finds out with the other ranks whether any is bad; before
        clipping. Once for each update()."""
        if not self._enable:
            return
        if id(optimizer) in self._found:
            raise Error("config", "GradScaler.unscale_ twice for one step", "call update() after step()")
        import torch

        factor, is_bad = 1.0 / self._scale, False
        with torch.no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    gradient = parameter.grad
                    if gradient is None:
                        continue
                    values = gradient._values() if gradient.is_sparse else gradient
                    # The sum of finite values is finite, but for an overflow, which is as bad.
                    is_bad = is_bad or not torch.isfinite(values.sum(dtype=torch.float64)).item()
                    values.mul_(factor)
        self._found[id(optimizer)] = _any_rank(is_bad)

    def step(self, optimizer: torch.optim.Optimizer) -> Any:
        """The optimizer's step, unless a gradient is bad."""
        if not self._enable:
            return optimizer.step()
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        return None if self._found[id(optimizer)] else optimizer.step()

    def minimize(self, optimizer: Any, *losses: Any) -> None:
        """step() and update(); scale(loss).backward() has been called before."""
        self.step(optimizer)
        self.update()

    def update(self) -> None:
        """Chooses the factor of the next step."""
        if not self._enable or not self._found:
            return
        is_bad = any(self._found.values())
        self._found = {}
        if not self._is_dynamic:
            return
        if is_bad:
            self._good_steps, self._bad_steps = 0, self._bad_steps + 1
            if self._bad_steps == self._decr_every:
                self._scale = max(self._scale * self._decr_ratio, 1.0)
                self._bad_steps = 0
        else:
            self._good_steps, self._bad_steps = self._good_steps + 1, 0
            if self._good_steps == self._incr_every:
                self._scale *= self._incr_ratio
                self._good_steps = 0

    def get_scale(self) -> float:
        """The factor of the next loss."""
        return self._scale if self._enable else 1.0

    def is_enable(self) -> bool:
        """Whether anything is done."""
        return self._enable

    def is_use_dynamic_loss_scaling(self) -> bool:
        """Whether the factor changes."""
        return self._is_dynamic

    def get_init_loss_scaling(self) -> float:
        """The first factor."""
        return self._init_scale

    def state_dict(self) -> dict[str, Any]:
        """What load_state_dict() goes on from, with Paddle's keys."""
        if not self._enable:
            return {}
        return {
            "scale": self._scale,
            "incr_ratio": self._incr_ratio,
            "decr_ratio": self._decr_ratio,
            "incr_every_n_steps": self._incr_every,
            "decr_every_n_nan_or_inf": self._decr_every,
            "incr_count": self._good_steps,
            "decr_count": self._bad_steps,
            "use_dynamic_loss_scaling": self._is_dynamic,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on from state_dict()."""
        if not self._enable:
            return
        self._scale = float(state_dict["scale"])
        self._incr_ratio, self._decr_ratio = float(state_dict["incr_ratio"]), float(state_dict["decr_ratio"])
        self._incr_every, self._decr_every = (
            int(state_dict["incr_every_n_steps"]),
            int(state_dict["decr_every_n_nan_or_inf"]),
        )
        self._good_steps, self._bad_steps = int(state_dict["incr_count"]), int(state_dict["decr_count"])
        self._is_dynamic = bool(state_dict["use_dynamic_loss_scaling"])


def _any_rank(is_bad):
    """Whether it is so on any rank."""
    from fleetrun.distributed import collectives
    from fleetrun.distributed._world import the_world

    if the_world.size == 1:
        return is_bad
    import numpy

    flag = numpy.array([is_bad], dtype=numpy.uint8)
    collectives.all_reduce(flag, collectives.ReduceOp.MAX)
    return bool(flag[0])


__getattr__, __dir__ = _lazy.attach(__name__)

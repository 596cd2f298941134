"""Schedules that find a rate from the one before it, as Paddle 2.6.2 does: after set_state_dict(),
step(epoch) or with last_epoch= they go on from the rate that they have, and not from the one that their
formula has for the epoch. Part of paddle.optimizer.lr."""

import math

from fleetrun._error import Error
from fleetrun.optimizer._schedule import LRScheduler, above_zero

__all__ = ["CosineAnnealingDecay", "CosineAnnealingWarmRestarts", "LinearLR"]


class CosineAnnealingDecay(LRScheduler):
    """eta_min + (learning_rate - eta_min) * (1 + cos(pi * epoch / T_max)) / 2. Source: Loshchilov and Hutter,
    2017."""

    def __init__(
        self,
        learning_rate: float,
        T_max: int,
        eta_min: float = 0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        above_zero(self, T_max=T_max)
        self.T_max = T_max
        self.eta_min = float(eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next epoch, or to `epoch` by the formula."""
        self._by_formula = epoch is not None
        super().step(epoch)

    def get_lr(self) -> float:
        if self._by_formula or self.last_epoch == 0:
            return self.eta_min + (self.base_lr - self.eta_min) * self._height(self.last_epoch) / 2
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            return self.last_lr + (self.base_lr - self.eta_min) * (2 - self._height(1)) / 2
        factor = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return factor * (self.last_lr - self.eta_min) + self.eta_min

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    """CosineAnnealingDecay that starts anew after T_0 epochs, then after T_mult times as many each time.
    Source: Loshchilov and Hutter, 2017."""

    def __init__(
        self,
        learning_rate: float,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        above_zero(self, T_0=T_0, T_mult=T_mult)
        self.T_0 = self.T_i = int(T_0)
        self.T_mult = int(T_mult)
        self.eta_min = float(eta_min)
        self.T_cur: float = last_epoch
        super().__init__(learning_rate, last_epoch, verbose)

    def step(self, epoch: float | None = None) -> None:
        """Goes on to the next epoch, or to `epoch`, which may lie between two. The place within a period is
        counted, and no part of state_dict()."""
        if epoch is None and self.last_epoch >= 0:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
            return super().step()
        epoch = 0 if epoch is None else epoch
        if epoch < 0:
            raise Error("config", f"CosineAnnealingWarmRestarts.step({epoch})", "an epoch is 0 or above")
        self._enter(epoch)
        super().step(math.floor(epoch))

    def _enter(self, epoch: float) -> None:
        if epoch >= self.T_0 and self.T_mult == 1:
            self.T_cur = epoch % self.T_0
            return
        self.T_cur, self.T_i = epoch, self.T_0
        if epoch >= self.T_0:
            # By a logarithm, whose rounding decides at a period's first epoch, as in Paddle.
            periods = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_i = self.T_0 * self.T_mult**periods
            self.T_cur = epoch - (self.T_i - self.T_0) / (self.T_mult - 1)

    def get_lr(self) -> float:
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return self.eta_min + (self.base_lr - self.eta_min) * height / 2


class LinearLR(LRScheduler):
    """learning_rate times a factor that goes from start_factor to end_factor in total_steps, and stays
    there."""

    def __init__(
        self,
        learning_rate: float,
        total_steps: int,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        above_zero(self, total_steps=total_steps, start_factor=start_factor)
        if start_factor > 1 or not 0 <= end_factor <= 1:
            raise Error(
                "config",
                f"paddle.optimizer.lr.LinearLR: start_factor={start_factor}, end_factor={end_factor}",
                "both are at most 1",
            )
        self.total_steps = total_steps
        self.start_factor = start_factor
        self.end_factor = end_factor
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        if self.last_epoch == 0:
            return self.base_lr * self.start_factor
        if self.last_epoch > self.total_steps:
            return self.last_lr
        more = self.end_factor - self.start_factor
        return self.last_lr * (
            1 + more / (self.total_steps * self.start_factor + (self.last_epoch - 1) * more)
        )

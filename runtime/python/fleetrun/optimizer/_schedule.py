"""The base of schedules of the learning rate (lr.py)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fleetrun._arguments import plain
from fleetrun._error import Error


class LRScheduler:
    """Base of all schedules: get_lr() says the rate of `last_epoch`, and calling the schedule gives the
    current one."""

    # Whether Executor.run() calls step() by itself.
    by_step = False
    # What set_state_dict() needs.
    _STATE: tuple[str, ...] = ("last_epoch", "last_lr")

    def __init__(self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False) -> None:
        learning_rate = plain(learning_rate)
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, (int, float)):
            raise Error(
                "config",
                f"paddle.optimizer.lr.{type(self).__name__}(learning_rate={learning_rate!r}) is not a number",
            )
        self.base_lr = float(learning_rate)
        self.last_lr = float(learning_rate)
        self.last_epoch = int(last_epoch)
        self.verbose = verbose
        self.step()

    def __call__(self) -> float:
        return self.last_lr

    def use(self, variable: Any) -> None:
        """Told of the variable that an optimizer keeps the rate in, where by_step."""

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next epoch, or to `epoch`."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        self.last_lr = float(self.get_lr())
        if not math.isfinite(self.last_lr):
            raise Error(
                "config",
                f"paddle.optimizer.lr.{type(self).__name__}: the learning rate of epoch {self.last_epoch} "
                f"is {self.last_lr}",
                "choose numbers that give a finite rate for every epoch",
            )
        self._say()

    def _say(self) -> None:
        if self.verbose:
            print(f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to {self.last_lr}.")

    def get_lr(self) -> float:
        """The rate of `last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr()")

    def state_dict(self) -> dict[str, Any]:
        """What set_state_dict() takes to go on from here."""
        return {"last_epoch": self.last_epoch, "last_lr": self.last_lr}

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on from where state_dict() was made."""
        for key in self._STATE:
            if key not in state_dict:
                raise Error(
                    "config",
                    f"{type(self).__name__}.set_state_dict: {key} is not there",
                    "give it what state_dict() returned",
                )
            setattr(self, key, state_dict[key])

    set_dict = set_state_dict


def above_zero(schedule: LRScheduler, **arguments: Any) -> None:
    """Throws: Error(config) for an argument that is not above 0."""
    for name, value in arguments.items():
        if not value > 0:
            raise Error(
                "config",
                f"paddle.optimizer.lr.{type(schedule).__name__}: {name}={value!r}",
                "it must be above 0",
            )

"""Learning rates of a larger batch. Source: document 001, section 4.1."""

from typing import Any

import torch

from fleetrun._error import Error
from fleetrun.distributed._world import the_world

__all__ = ["LinearWarmup", "scaled_learning_rate"]


def scaled_learning_rate(
    learning_rate: float, batch_size: int | None = None, global_batch_size: int | None = None
) -> float:
    """The rate for all ranks together, in proportion to the batch: learning_rate is that of one process with
    `batch_size` examples. global_batch_size: what all ranks take in a step; not given: batch_size of each
    rank, so the rate is multiplied by their number. A global batch of batch_size leaves it as it is."""
    if global_batch_size is None:
        return learning_rate * the_world.size
    if not batch_size:
        raise Error(
            "config",
            "scaled_learning_rate with global_batch_size, but without batch_size",
            "give both: the rate is multiplied by global_batch_size / batch_size",
        )
    return learning_rate * global_batch_size / batch_size


class LinearWarmup(torch.optim.lr_scheduler.LambdaLR):
    """The rates of a torch optimizer grow from start_factor of theirs to all of it in `warmup_steps` calls of
    step(), and stay there; with `after`, a function of the number of steps since then, they are multiplied by
    its value."""

    def __init__(
        self,
        optimizer: Any,
        warmup_steps: int,
        start_factor: float = 0.1,
        after: Any = None,
        last_epoch: int = -1,
    ) -> None:
        if warmup_steps < 1 or not 0 <= start_factor <= 1:
            raise Error(
                "config",
                f"LinearWarmup(warmup_steps={warmup_steps}, start_factor={start_factor})",
                "warmup_steps is at least 1, start_factor from 0 to 1",
            )

        def factor(step):
            if step < warmup_steps:
                return start_factor + (1.0 - start_factor) * step / warmup_steps
            return after(step - warmup_steps) if after else 1.0

        super().__init__(optimizer, factor, last_epoch)

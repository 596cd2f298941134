"""This process's place among the trainers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fleetrun.distributed._membership import wait_for_place

if TYPE_CHECKING:
    from fleetrun.distributed._world import Group

__all__ = ["get_rank", "get_world_size", "ParallelEnv"]


def get_rank(group: Group | None = None) -> int:
    """The trainer's rank: PADDLE_TRAINER_ID, else torchrun's RANK, 0 without a launcher; with a group its
    place in that, -1 outside of it."""
    wait_for_place()
    return int(_of_launcher("PADDLE_TRAINER_ID", "RANK", "0")) if group is None else group.rank


def get_world_size(group: Group | None = None) -> int:
    """The number of trainers: PADDLE_TRAINERS_NUM, else torchrun's WORLD_SIZE, 1 without a launcher; with a
    group its size, -1 outside of it."""
    return int(_of_launcher("PADDLE_TRAINERS_NUM", "WORLD_SIZE", "1")) if group is None else group.world_size


def _of_launcher(ours, torchruns, alone):
    return os.environ.get(ours) or os.environ.get(torchruns) or alone


class ParallelEnv:
    """What the launcher says of this trainer, as it was when the object was made."""

    def __init__(self) -> None:
        self.rank = get_rank()
        self.world_size = get_world_size()
        self.device_id = 0
        self.device_type = os.environ.get("PADDLE_XCCL_BACKEND", "")
        self.current_endpoint = os.environ.get("PADDLE_CURRENT_ENDPOINT", "")
        self.trainer_endpoints = os.environ.get("PADDLE_TRAINER_ENDPOINTS", "").split(",")
        self.nrings = int(os.environ.get("FLAGS_nccl_nrings", "1"))  # noqa: SIM112
        self.pg_timeout = int(os.environ.get("PADDLE_PG_TIMEOUT", "1800000"))
        # The names of Paddle 1.x.
        self.local_rank, self.nranks, self.dev_id = self.rank, self.world_size, self.device_id

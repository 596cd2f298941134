"""This process's place among the trainers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetrun.distributed._world import Group

__all__ = ["get_rank", "get_world_size"]


def get_rank(group: Group | None = None) -> int:
    """The trainer's rank: PADDLE_TRAINER_ID, 0 without a launcher; with a group its place in that, -1 outside
    of it."""
    return int(os.environ.get("PADDLE_TRAINER_ID", "0")) if group is None else group.rank


def get_world_size(group: Group | None = None) -> int:
    """The number of trainers: PADDLE_TRAINERS_NUM, 1 without a launcher; with a group its size, -1 outside of
    it."""
    return int(os.environ.get("PADDLE_TRAINERS_NUM", "1")) if group is None else group.world_size

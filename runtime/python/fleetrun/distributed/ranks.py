"""This process's place among the trainers."""

import os

from fleetrun._arguments import refuse


def get_rank(group=None):
    """The trainer's rank: PADDLE_TRAINER_ID, 0 without a launcher."""
    refuse("paddle.distributed.get_rank", group=(group, None))
    return int(os.environ.get("PADDLE_TRAINER_ID", "0"))


def get_world_size(group=None):
    """The number of trainers: PADDLE_TRAINERS_NUM, 1 without a launcher."""
    refuse("paddle.distributed.get_world_size", group=(group, None))
    return int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))

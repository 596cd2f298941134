"""Processes that were started together, and that nothing tells from each other."""

from __future__ import annotations

import os

from fleetrun._arguments import warn_once

__all__ = ["warn_where_alone"]


def warn_where_alone() -> None:
    """Of the processes that mpirun or srun starts each works alone where nothing says what rank it has, or
    only a fleetrun of one process around mpirun does. (srun often starts several jobs of fleetrun's.)"""
    said = ("WORLD_SIZE", "PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ENDPOINTS", "PADDLE_PSERVERS_IP_PORT_LIST")
    sizes = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]
    if not any(os.environ.get(name) for name in said):
        sizes.append("SLURM_STEP_NUM_TASKS")
    elif os.environ.get("WORLD_SIZE") != "1" or "FLEETRUN_RANK" not in os.environ:
        return
    for name in sizes:
        if os.environ.get(name, "1") != "1":
            warn_once(
                "alone",
                f"this process is one of several ({name} is {os.environ[name]}) and trains alone, as "
                "nothing says which rank it has: start fleetrun in their place, or set RANK, "
                "WORLD_SIZE, MASTER_ADDR and MASTER_PORT; WORLD_SIZE=1 says that it is meant",
            )

"""paddle.fluid.incubate.fleet.base and parameter_server.mode: the classes above every Fleet of Paddle 1.x."""

from __future__ import annotations

from fleetrun import _lazy

__all__ = ["DistributedMode", "Mode"]


class Mode:
    """Which Fleet it is."""

    TRANSPILER = 1
    PSLIB = 2
    COLLECTIVE = 3


class DistributedMode:
    """How trainers and servers exchange."""

    SYNC = 0
    ASYNC = 1
    HALF_ASYNC = 2
    GEO = 3


__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "Fleet": "distributed.fleet._fleet:Fleet",
        "DistributedOptimizer": "optimizer.optimizers:Optimizer",
        "role_maker": "distributed.fleet.older_roles",
    },
    owner="paddle.incubate.distributed.fleet.base",
)

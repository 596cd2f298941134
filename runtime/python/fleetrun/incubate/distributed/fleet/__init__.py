"""paddle.incubate.distributed.fleet."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "parameter_server": "incubate.distributed.fleet.parameter_server",
        "role_maker": "incubate.distributed.fleet.role_maker",
    },
)

"""paddle.incubate.distributed.fleet.parameter_server."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "distribute_transpiler": "incubate.distributed.fleet.parameter_server.distribute_transpiler",
    },
)

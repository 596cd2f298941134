"""paddle.fluid.incubate.fleet.parameter_server."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {"distribute_transpiler": "fluid.incubate.fleet.parameter_server.distribute_transpiler"},
)

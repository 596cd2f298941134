"""paddle.fluid.incubate.fleet."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "base": "fluid.incubate.fleet.base",
        "parameter_server": "fluid.incubate.fleet.parameter_server",
    },
)

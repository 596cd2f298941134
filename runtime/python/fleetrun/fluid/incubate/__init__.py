"""paddle.fluid.incubate."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(__name__, {"fleet": "fluid.incubate.fleet"})

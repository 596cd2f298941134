"""paddle.fluid.incubate.fleet.base."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(__name__, {"role_maker": "fluid.incubate.fleet.base.role_maker"})

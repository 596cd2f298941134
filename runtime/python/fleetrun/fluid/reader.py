"""paddle.fluid.reader: loaders under their older names."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(__name__, _lazy.LOADERS)

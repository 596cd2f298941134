"""paddle.incubate: modules of Paddle that lie elsewhere here (_homes.py)."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(__name__)

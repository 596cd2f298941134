"""paddle.base: the names of paddle.fluid that Paddle 2.6 still has."""

from fleetrun import _lazy
from fleetrun.fluid import NAMES

__getattr__, __dir__ = _lazy.attach(__name__, NAMES)

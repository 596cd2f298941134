"""paddle.utils: what scripts that build programs use of it."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(__name__, {"unique_name": "utils.unique_name"})

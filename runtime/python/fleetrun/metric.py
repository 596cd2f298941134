"""paddle.metric: what programs use of it."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(__name__, {"accuracy": "static.metrics:accuracy"})

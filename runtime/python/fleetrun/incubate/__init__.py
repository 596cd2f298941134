"""paddle.incubate: names and modules of Paddle that lie elsewhere here (_homes.py)."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {"optimizer": "incubate.optimizer", **_lazy.names("static.averages", "LookAhead ModelAverage")},
)

"""paddle.incubate."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "distributed": "incubate.distributed",
    },
)

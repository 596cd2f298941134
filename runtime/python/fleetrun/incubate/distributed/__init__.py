"""paddle.incubate.distributed."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "fleet": "incubate.distributed.fleet",
    },
)

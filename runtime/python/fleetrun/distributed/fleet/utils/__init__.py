"""paddle.distributed.fleet.utils: file systems."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "fs": "distributed.fleet.utils.fs",
        **_lazy.names("distributed.fleet.utils.fs", "LocalFS HDFSClient"),
    },
)

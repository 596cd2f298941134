"""paddle.distributed.fleet.utils: file systems."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(__name__, "paddle.distributed.fleet.utils", {
    "fs": "distributed.fleet.utils.fs",
    **_lazy.names("distributed.fleet.utils.fs", "LocalFS HDFSClient"),
})

"""paddle.distributed.fleet.utils: file systems, and inference with the tables of servers."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "fs": "distributed.fleet.utils.fs",
        "ps_util": "distributed.fleet.utils.ps_util",
        "DistributedInfer": "distributed.fleet.utils.ps_util:DistributedInfer",
        **_lazy.names("distributed.fleet.utils.fs", "LocalFS HDFSClient"),
    },
)

"""paddle.distributed.transpiler: the configuration of the older strategies."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    _lazy.names("distributed.fleet._configs", "DistributeTranspilerConfig ServerRuntimeConfig"),
)

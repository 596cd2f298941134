"""paddle.incubate.distributed.fleet.parameter_server.distribute_transpiler: fleet and its strategies. Source: document 000."""

from fleetrun import _lazy

_OWNER = "paddle.incubate.distributed.fleet.parameter_server.distribute_transpiler"
_CONFIGS = "DistributeTranspilerConfig TrainerRuntimeConfig ServerRuntimeConfig"
_STRATEGIES = ("StrategyFactory DistributedStrategyFactory SyncStrategy AsyncStrategy HalfAsyncStrategy GeoStrategy")

__getattr__, __dir__ = _lazy.attach(__name__, _OWNER, {
    "fleet": "distributed.fleet._transpiler:fleet",
    "distributed_strategy": "incubate.distributed.fleet.parameter_server.distribute_transpiler.distributed_strategy",
    **_lazy.names("distributed.fleet._configs", _CONFIGS),
    **_lazy.names("distributed.fleet._transpiler_strategy", _STRATEGIES),
})

"""paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler and its distributed_strategy: fleet and
the strategies of Paddle 1.x. Source: document 000."""

from fleetrun import _lazy

_STRATEGIES = "StrategyFactory DistributedStrategyFactory SyncStrategy AsyncStrategy HalfAsyncStrategy"

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "fleet": "distributed.fleet._transpiler:fleet",
        "distributed_strategy": "distributed.fleet.older",
        "DistributedStrategy": "distributed.fleet._transpiler_strategy:TranspilerStrategy",
        **_lazy.names("distributed.fleet._transpiler_strategy", _STRATEGIES + " GeoStrategy"),
        **_lazy.names(
            "distributed.fleet._configs",
            "DistributeTranspilerConfig TrainerRuntimeConfig ServerRuntimeConfig",
        ),
    },
    owner="paddle.incubate.distributed.fleet.parameter_server.distribute_transpiler",
)

"""paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__, "paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy", {
        **_lazy.names("distributed.fleet._configs", "DistributeTranspilerConfig TrainerRuntimeConfig ServerRuntimeConfig"),
        **_lazy.names("distributed.fleet._transpiler_strategy", "StrategyFactory DistributedStrategyFactory SyncStrategy "
                      "AsyncStrategy HalfAsyncStrategy GeoStrategy"),
    })

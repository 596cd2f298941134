"""Data parallel training of PyTorch modules: what fleet.distributed_model and fleet.distributed_optimizer
return, and DistributedDataParallel for scripts that import PyTorch's."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.names("distributed.parallel.model", "DataParallel DistributedDataParallel"),
        "distribute_optimizer": "distributed.parallel.optimizer:distribute_optimizer",
        **_lazy.names("distributed.parallel.rates", "scaled_learning_rate LinearWarmup"),
    },
)

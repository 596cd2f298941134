"""Data parallel training of PyTorch modules: what fleet.distributed_model and fleet.distributed_optimizer
return."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "DataParallel": "distributed.parallel.model:DataParallel",
        "distribute_optimizer": "distributed.parallel.optimizer:distribute_optimizer",
        **_lazy.names("distributed.parallel.rates", "scaled_learning_rate LinearWarmup"),
    },
)

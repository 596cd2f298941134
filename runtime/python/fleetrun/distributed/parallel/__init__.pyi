# Written by scripts/python-stubs.
"""Data parallel training of PyTorch modules: what fleet.distributed_model and fleet.distributed_optimizer
return, and DistributedDataParallel for scripts that import PyTorch's."""
from fleetrun.distributed.parallel.model import DataParallel as DataParallel
from fleetrun.distributed.parallel.model import DistributedDataParallel as DistributedDataParallel
from fleetrun.distributed.parallel.optimizer import distribute_optimizer as distribute_optimizer
from fleetrun.distributed.parallel.rates import scaled_learning_rate as scaled_learning_rate
from fleetrun.distributed.parallel.rates import LinearWarmup as LinearWarmup
__all__ = ['DataParallel', 'DistributedDataParallel', 'distribute_optimizer', 'scaled_learning_rate', 'LinearWarmup']

"""paddle.io: data sets, samplers and the DataLoader, for numpy arrays and for PyTorch.

Source: documents 001 (DistributedBatchSampler, DataLoader) and 004 (from_generator, double buffering, uint8,
infinite reading). Names, defaults and orders are Paddle 2.6.2's; what fleetrun adds is said in the
docstrings.
"""

from fleetrun import _lazy

_TABLE = {
    **_lazy.names(
        "io.dataset",
        "Dataset IterableDataset TensorDataset ComposeDataset ChainDataset ConcatDataset Subset random_split",
    ),
    **_lazy.names(
        "io.sampler", "Sampler SequenceSampler RandomSampler WeightedRandomSampler SubsetRandomSampler"
    ),
    "DataLoader": "io.loader:DataLoader",
    "from_dali": "io.dali:from_dali",
    "get_worker_info": "io._worker:get_worker_info",
    "default_collate_fn": "io._collate:default_collate_fn",
    **_lazy.names("io.batch_sampler", "BatchSampler DistributedBatchSampler InfiniteBatchSampler"),
}
__all__ = list(_TABLE)  # for `from paddle.io import *`
__getattr__, __dir__ = _lazy.attach(__name__, _TABLE)

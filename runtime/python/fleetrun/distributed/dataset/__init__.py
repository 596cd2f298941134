"""Datasets: what Executor.train_from_dataset and infer_from_dataset read."""

from fleetrun import _lazy
from fleetrun.distributed.dataset._base import DatasetBase
from fleetrun.distributed.dataset.factory import DatasetFactory
from fleetrun.distributed.dataset.in_memory import InMemoryDataset
from fleetrun.distributed.dataset.queue import FileInstantDataset, QueueDataset
from fleetrun.distributed.dataset.tree_index import TreeIndex

__all__ = [
    "DatasetBase", "DatasetFactory", "FileInstantDataset", "InMemoryDataset", "QueueDataset", "TreeIndex",
]  # fmt: skip

__getattr__, __dir__ = _lazy.attach(__name__, owner="paddle.distributed.fleet.dataset")

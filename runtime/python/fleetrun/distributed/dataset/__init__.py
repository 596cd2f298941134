"""Datasets: what Executor.train_from_dataset and infer_from_dataset read."""

from fleetrun.distributed.dataset._base import DatasetBase
from fleetrun.distributed.dataset.factory import DatasetFactory
from fleetrun.distributed.dataset.in_memory import InMemoryDataset
from fleetrun.distributed.dataset.queue import FileInstantDataset, QueueDataset

__all__ = ["DatasetBase", "DatasetFactory", "FileInstantDataset", "InMemoryDataset", "QueueDataset"]

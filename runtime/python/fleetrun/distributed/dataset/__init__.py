"""Datasets: what Executor.train_from_dataset and infer_from_dataset read."""

from fleetrun.distributed.dataset.factory import DatasetFactory
from fleetrun.distributed.dataset.in_memory import InMemoryDataset
from fleetrun.distributed.dataset.queue import QueueDataset

__all__ = ["DatasetFactory", "InMemoryDataset", "QueueDataset"]

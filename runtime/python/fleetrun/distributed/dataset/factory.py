"""DatasetFactory: the older way to make a dataset."""

from typing import Any

from fleetrun._error import Error
from fleetrun.distributed.dataset.in_memory import InMemoryDataset
from fleetrun.distributed.dataset.queue import QueueDataset

__all__ = ["DatasetFactory"]

_CLASSES: dict[str, Any] = {"QueueDataset": QueueDataset, "InMemoryDataset": InMemoryDataset}


class DatasetFactory:
    """The older way to make a dataset."""

    def create_dataset(self, datafeed_class: str = "QueueDataset") -> QueueDataset | InMemoryDataset:
        """A dataset of this class, "QueueDataset" or "InMemoryDataset". Throws: Error(config) for another
        one."""
        if datafeed_class not in _CLASSES:
            raise Error(
                "config",
                f"DatasetFactory.create_dataset(datafeed_class={datafeed_class!r}) is not supported",
                f"choose one of {', '.join(_CLASSES)}",
            )
        return _CLASSES[datafeed_class]()

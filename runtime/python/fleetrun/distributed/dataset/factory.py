"""DatasetFactory: the older way to make a dataset."""

from fleetrun._arguments import refuse
from fleetrun.distributed.dataset.queue import QueueDataset


class DatasetFactory:
    """The older way to make a dataset."""

    def create_dataset(self, datafeed_class="QueueDataset"):
        """A QueueDataset. Throws: Error(config) for another class."""
        refuse("DatasetFactory.create_dataset", datafeed_class=(datafeed_class, "QueueDataset"))
        return QueueDataset()

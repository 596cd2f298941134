"""DataLoader.from_dataset: the batches of a QueueDataset or an InMemoryDataset, for a loop over
Executor.run."""

import itertools

import numpy

from fleetrun import _native
from fleetrun._error import Error
from fleetrun._types import Any, Iterator
from fleetrun.io._feeds import check_places
from fleetrun.lod_tensor import LoDTensor

__all__ = ["DatasetLoader"]


class DatasetLoader:
    """`for feed in loader` gives [{name: value}] of each batch, as Executor.run(feed=) takes it: arrays of
    the variables' shapes, LoDTensors for those with lod_level=1; of n places n batches in one list, for the
    replicas of a CompiledProgram, at the end as many as there are. drop_last: without the batch that is
    short. One thread reads.
    """

    def __init__(self, dataset: Any, places: Any, drop_last: bool = True) -> None:
        from fleetrun.distributed.dataset._base import DatasetBase

        if not isinstance(dataset, DatasetBase):
            raise Error(
                "config",
                f"DataLoader.from_dataset({type(dataset).__name__})",
                "give it a paddle.distributed.QueueDataset or InMemoryDataset",
            )
        self._places = check_places(places)
        self._dataset = dataset
        self._drop_last = bool(drop_last)

    def __iter__(self) -> Iterator[Any]:
        feeds = self._feeds()
        while step := list(itertools.islice(feeds, self._places)):
            yield step

    def _feeds(self):
        source = self._dataset.native(1)
        _native.start_reading(source, True)
        try:
            while (batch := _native.read_batch(source, 0)) is not None:
                feed = {
                    variable.name: _value(variable, *found)
                    for variable, found in zip(self._dataset.variables, batch)
                }
                if self._drop_last and _rows(next(iter(feed.values()))) < self._dataset.batch_size:
                    continue
                yield feed
        finally:
            _native.stop_reading(source)

    __call__ = __iter__


def _value(variable, values, offsets):
    array = numpy.array(values)
    if offsets is None:
        return array.reshape([-1, *variable.shape[1:]])
    return LoDTensor(array.reshape([-1, 1]), numpy.asarray(offsets).tolist())


def _rows(value):
    return len(value.lod_offsets) - 1 if isinstance(value, LoDTensor) else len(value)

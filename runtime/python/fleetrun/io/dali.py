"""An NVIDIA DALI pipeline in the place of a DataLoader. DALI itself is not imported: what is given is run as
its documentation says ("Pipeline Run Methods", "Data Types"): run() gives a tuple of TensorLists,
StopIteration at the end of an epoch, reset() begins the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fleetrun._error import Error

if TYPE_CHECKING:
    from fleetrun._variable import Variable

__all__ = ["DaliLoader", "from_dali"]


def from_dali(
    pipeline: Any,
    names: Sequence[Variable | str] | None = None,
    *,
    size: int | None = None,
    reader_name: str | None = None,
    last_batch: str = "partial",
    to: str = "numpy",
    infinite: bool = False,
) -> DaliLoader:
    """A DaliLoader: `for batch in loader` (or loader()) gives the pipeline's batches, {name: array} with
    `names`, which Executor.run takes as feed, else a list of arrays.

    names: of the pipeline's outputs, or variables. size: examples of a pass, or reader_name: the reader in
    the pipeline that knows it; without either a pass ends where the pipeline throws StopIteration.
    last_batch, for passes with a size: "partial", without what fills up the last batch, or "fill", as DALI
    gives it, the next pass then beginning that much later. to="torch": tensors of the same memory. infinite:
    epoch after epoch without end. Arrays are the script's own: what lies in DALI's memory, which the next
    batch takes, is copied. Batches on a GPU come to the CPU. An output whose examples differ in shape is a
    list of arrays.
    Throws: Error(config), Error(data); what the pipeline throws.
    """
    return DaliLoader(pipeline, names, size, reader_name, last_batch, to, infinite)


class DaliLoader:
    """See from_dali()."""

    def __init__(
        self,
        pipeline: Any,
        names: Sequence[Variable | str] | None,
        size: int | None,
        reader_name: str | None,
        last_batch: str,
        to: str,
        infinite: bool,
    ) -> None:
        from fleetrun.io._feeds import feed_names, torch_or_numpy

        missing = [call for call in ("run", "reset") if not callable(getattr(pipeline, call, None))]
        if missing:
            raise Error(
                "config",
                f"from_dali: {type(pipeline).__name__} has no {missing[0]}(), which a DALI pipeline has",
                "give it what a function with @nvidia.dali.pipeline_def returns",
            )
        if size is not None and reader_name is not None:
            raise Error("config", "from_dali: size and reader_name", "give it one of the two")
        if last_batch not in ("partial", "fill"):
            raise Error("config", f"from_dali: last_batch={last_batch!r}", 'it is "partial" or "fill"')
        if hasattr(pipeline, "build"):
            pipeline.build()
        self.pipeline = pipeline
        self._names = None if names is None else feed_names(names)
        self._size: Any = _size_of_shard(pipeline, reader_name, last_batch) if reader_name else size
        self._last_batch = last_batch
        self._convert = torch_or_numpy("from_dali", to)
        self._infinite = infinite
        # Examples that a pass with last_batch="fill" took from the next one.
        self._taken = 0

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield from self._until_the_end() if self._size is None else self._counted()
            if not self._infinite:
                return

    def __call__(self) -> Iterator[Any]:
        return iter(self)

    def _until_the_end(self):
        any_batch = False
        while True:
            try:
                outputs = self.pipeline.run()
            except StopIteration:
                break
            any_batch = True
            yield self._batch(outputs, None)
        self.pipeline.reset()
        if self._infinite and not any_batch:
            raise Error("data", "from_dali: an epoch without a batch")

    def _counted(self):
        while self._taken < self._size:
            outputs = self.pipeline.run()
            count = len(outputs[0])
            self._taken += count
            surplus = max(0, self._taken - self._size) if self._last_batch == "partial" else 0
            yield self._batch(outputs, count - surplus)
        self._taken = self._taken - self._size if self._last_batch == "fill" else 0
        self.pipeline.reset()

    def _batch(self, outputs, count):
        if self._names is not None and len(self._names) != len(outputs):
            raise Error(
                "config",
                f"from_dali: the pipeline has {len(outputs)} outputs, names has {len(self._names)}",
                "name each output, in the pipeline's order",
            )
        arrays = [self._convert(_arrays(output, count)) for output in outputs]
        return arrays if self._names is None else dict(zip(self._names, arrays))


def _arrays(output, count):
    """The first `count` examples (None: all) of a TensorList: an array, or a list where shapes differ."""
    if hasattr(output, "as_cpu"):
        output = output.as_cpu()
    if output.is_dense_tensor():
        return _own(output.as_array())[:count]
    return [_own(output.at(place)) for place in range(len(output) if count is None else count)]


def _own(array):
    """`array`, copied unless it is a copy already, which DALI 2.4 gives and its documentation does not
    promise."""
    return array if array.flags.owndata else array.copy()


def _size_of_shard(pipeline, reader_name, last_batch):
    known = pipeline.reader_meta()
    if reader_name not in known:
        raise Error(
            "config",
            f"from_dali: the pipeline has no reader {reader_name!r}",
            f"it has {', '.join(known) or 'none'}",
        )
    meta = known[reader_name]
    if last_batch == "partial" and not meta["pad_last_batch"]:
        raise Error(
            "config",
            f"from_dali: reader {reader_name} fills up the last batch with examples of the next epoch",
            'make it with pad_last_batch=True, or use last_batch="fill"',
        )
    shard, shards, size = meta["shard_id"], meta["number_of_shards"], meta["epoch_size"]
    if last_batch == "partial" or shards == 1:
        return size * (shard + 1) // shards - size * shard // shards
    raise Error(
        "config",
        f'from_dali: last_batch="fill" with reader {reader_name} in {shards} shards',
        'make it with pad_last_batch=True and use last_batch="partial", so that the trainers end together',
    )

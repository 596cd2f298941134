"""paddle.batch: examples in lists, for DataLoader.from_generator; and those of one trainer."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from fleetrun.io.sampler import above_zero

__all__ = ["batch", "distributed_batch_reader", "Reader"]


# A function that gives an iterator of examples.
Reader: TypeAlias = Callable[[], Iterable[Any]]


def batch(reader: Reader, batch_size: int, drop_last: bool = False) -> Reader:
    """A reader of lists of batch_size examples of `reader`, the last one shorter unless drop_last. A reader
    is a function that gives an iterator of examples. batch_size: of a float, the whole part
    counts. Throws: Error(config)."""
    import itertools

    batch_size = above_zero("paddle.batch", "batch_size", int(batch_size))

    def batches():
        examples = iter(reader())
        while found := list(itertools.islice(examples, batch_size)):
            if len(found) == batch_size or not drop_last:
                yield found

    return batches


def distributed_batch_reader(batch_reader: Reader) -> Reader:
    """A reader of this trainer's part of the batches: of as many in a row as there are trainers, one each; a
    last row that is not full is left out."""
    import itertools

    from fleetrun.distributed.ranks import get_rank, get_world_size

    rank, trainers = get_rank(), get_world_size()

    def batches():
        found = iter(batch_reader())
        while len(row := list(itertools.islice(found, trainers))) == trainers:
            yield row[rank]

    return batches

"""paddle.batch: examples in lists, for DataLoader.from_generator."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from fleetrun.io.sampler import above_zero

__all__ = ["batch", "Reader"]


# A function that gives an iterator of examples.
Reader: TypeAlias = Callable[[], Iterable[Any]]


def batch(reader: Reader, batch_size: int, drop_last: bool = False) -> Reader:
    """A reader of lists of batch_size examples of `reader`, the last one shorter unless drop_last. A reader
    is a function that gives an iterator of examples. Throws: Error(config)."""
    import itertools

    batch_size = above_zero("paddle.batch", "batch_size", batch_size)

    def batches():
        examples = iter(reader())
        while found := list(itertools.islice(examples, batch_size)):
            if len(found) == batch_size or not drop_last:
                yield found

    return batches

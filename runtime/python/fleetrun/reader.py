"""paddle.reader: readers made of readers, for DataLoader.from_generator. A reader is a function that gives an
iterator of examples."""

from __future__ import annotations

import collections
import itertools
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fleetrun import _lazy
from fleetrun.io.sampler import above_zero

if TYPE_CHECKING:
    from fleetrun.io.readers import Reader

__all__ = [
    "buffered", "cache", "chain", "compose", "ComposeNotAligned", "firstn", "map_readers",
    "multiprocess_reader", "shuffle", "xmap_readers",
]  # fmt: skip


class ComposeNotAligned(ValueError):
    """One of the readers of compose() has more examples than another."""


def cache(reader: Reader) -> Reader:
    """What `reader` gives now, from memory ever after."""
    examples = tuple(reader())
    return lambda: iter(examples)


def map_readers(func: Callable[..., Any], *readers: Reader) -> Reader:
    """func(an example of each reader), until one of them ends."""
    return lambda: map(func, *(reader() for reader in readers))


def shuffle(reader: Reader, buf_size: int) -> Reader:
    """Each buf_size examples, with 0 each one, in random order, by the generator of `random`."""

    def shuffled():
        examples = iter(reader())
        while part := list(itertools.islice(examples, max(buf_size, 1))):
            random.shuffle(part)
            yield from part

    return shuffled


def chain(*readers: Reader) -> Reader:
    """The examples of one reader after those of the other."""
    return lambda: itertools.chain(*[reader() for reader in readers])


def compose(*readers: Reader, check_alignment: bool = True) -> Reader:
    """Examples as tuples of what each reader gives, with tuples in them taken apart.

    check_alignment: Throws ComposeNotAligned when one reader ends before another; otherwise that is the end.
    """

    def composed():
        together = itertools.zip_longest if check_alignment else zip
        for parts in together(*[reader() for reader in readers]):
            if check_alignment and any(part is None for part in parts):
                raise ComposeNotAligned("outputs of readers are not aligned.")
            yield tuple(itertools.chain(*(part if isinstance(part, tuple) else (part,) for part in parts)))

    return composed


def firstn(reader: Reader, n: int) -> Reader:
    """The first n examples."""
    return lambda: itertools.islice(reader(), n)


def buffered(reader: Reader, size: Sequence[int]) -> Reader:
    """Reads up to `size` examples ahead, in a thread; 0: as many as there are."""

    def ahead():
        from fleetrun.io._passes import Buffer

        room = above_zero("paddle.reader.buffered", "size", size) if size else sys.maxsize
        buffer = Buffer(iter(reader()), room)
        try:
            while True:
                try:
                    example = buffer.take()
                except StopIteration:
                    return
                yield example
        finally:
            buffer.stop()

    return ahead


def xmap_readers(
    mapper: Callable[[Any], Any], reader: Reader, process_num: int, buffer_size: int, order: bool = False
) -> Reader:
    """mapper(example) of each, by process_num threads that are up to buffer_size examples ahead. The order is
    the reader's, whatever `order` says."""
    above_zero("paddle.reader.xmap_readers", "buffer_size", buffer_size)

    def mapped():
        import concurrent.futures

        threads = concurrent.futures.ThreadPoolExecutor(
            above_zero("paddle.reader.xmap_readers", "process_num", process_num)
        )
        waiting: Any = collections.deque()
        try:
            for example in reader():
                waiting.append(threads.submit(mapper, example))
                if len(waiting) >= buffer_size:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    return mapped


def multiprocess_reader(readers: Iterable[Reader], use_pipe: bool = True, queue_size: int = 1000) -> Reader:
    """The examples of several readers, each in a process of its own, taking turns until all have ended.
    use_pipe: accepted; arrays come through shared memory. queue_size: examples that each process may be
    ahead, 0: 1,000."""
    readers = list(readers)
    ahead = above_zero("paddle.reader.multiprocess_reader", "queue_size", queue_size or 1000)

    def together():
        from fleetrun.io.generator_loader import in_own_process

        passes = collections.deque(in_own_process(reader, ahead) for reader in readers)
        while passes:
            try:
                yield next(passes[0])
            except StopIteration:
                passes.popleft()
            passes.rotate(-1)

    return together


__getattr__, __dir__ = _lazy.attach(__name__)

"""DataLoader.from_generator: batches from a function of the script, for a loop or for Executor.run without
feed.

Source: document 004, section 1. What comes out and when is Paddle 2.6.2's, compared with it.
"""

from __future__ import annotations

import itertools
import weakref

import numpy

from fleetrun import framework
from fleetrun._arguments import as_list
from fleetrun._error import Error
from fleetrun._types import Any, Callable, Iterator, Sequence, Variable
from fleetrun.core import EOFException
from fleetrun.io import _collate, _passes, _seeds
from fleetrun.io._feeds import check_places, feed_names, named
from fleetrun.io._progress import Counted
from fleetrun.io._worker import Work
from fleetrun.io._workers import Workers
from fleetrun.io.dataset import IterableDataset
from fleetrun.io.readers import Reader
from fleetrun.io.readers import batch as in_batches
from fleetrun.io.sampler import above_zero
from fleetrun.lod_tensor import LoDTensor
from fleetrun.static._runs import LOADERS

__all__ = ["GeneratorLoader", "in_own_process", "PyReader"]


class GeneratorLoader:
    """Reads ahead with a thread, up to `capacity` batches for the variables feed_list, from what one of the
    set_ functions was given: a reader, which is a function that gives an iterator.

    iterable: `for batch in loader()` gives [{name: LoDTensor}], or [[LoDTensor, …]] with return_list, ready
    for Executor.run(feed=). Otherwise the loader belongs to the program that is being built: start() begins a
    pass, each Executor.run of the program takes a batch, after the last one it throws core.EOFException, and
    reset() ends the pass, at any time. A reader that never ends is started once, so that nothing is refilled
    between epochs.
    use_multiprocess: the reader runs in a process of its own, its arrays come through shared memory.
    use_double_buffer: accepted; batches are always made ahead. drop_last: of several places or replicas, the
    last batches are left out where there is not one for each; without it fewer are run, in an evaluation.
    Throws: Error(config), Error(data); what the reader throws comes out where its batch is taken.
    """

    def __init__(
        self,
        feed_list: Sequence[Any],
        capacity: int | None,
        use_double_buffer: bool,
        iterable: bool,
        return_list: bool,
        use_multiprocess: bool,
        drop_last: bool,
    ) -> None:
        if not feed_list:
            raise Error(
                "config",
                "DataLoader.from_generator: no feed_list",
                "give it the variables that paddle.static.data made",
            )
        self._variables = list(feed_list)
        self.names = feed_names(feed_list)
        self._capacity = above_zero("DataLoader.from_generator", "capacity", capacity)
        self._iterable = bool(iterable)
        self._return_list = bool(return_list)
        self._in_process, self.drop_last, self._places = bool(use_multiprocess), bool(drop_last), 1
        self._reader: Any = None
        self._pass: Any = None
        self._loop: Any = None
        self._reading: Callable[[], Any] = lambda: None
        if not self._iterable:
            LOADERS.of(framework.default_main_program()).append(self)

    @property
    def iterable(self) -> bool:
        """Whether it is for a loop."""
        return self._iterable

    @property
    def queue(self) -> Queue:
        """What scripts of Paddle 1.x ask how far it has read ahead."""
        return Queue(self._reading(), self._capacity)

    def set_sample_generator(
        self, reader: Reader, batch_size: int, drop_last: bool = True, places: Any = None
    ) -> GeneratorLoader:
        """`reader` gives examples, each with a value for every variable."""
        return self.set_sample_list_generator(in_batches(reader, batch_size, drop_last), places)

    def set_sample_list_generator(self, reader: Reader, places: Any = None) -> GeneratorLoader:
        """`reader` gives lists of examples, as paddle.batch() makes them."""

        def batches():
            for examples in reader():
                yield [
                    _column(variable, values)
                    for variable, values in zip(self._variables, self._parts(examples))
                ]

        return self.set_batch_generator(batches, places)

    def set_batch_generator(self, reader: Reader, places: Any = None) -> GeneratorLoader:
        """`reader` gives batches: an array for every variable. Of n places each step of a loop gets n, for
        the replicas of a CompiledProgram; without a loop places mean nothing, as in Paddle."""
        count = check_places(places)
        self._places = count if self._iterable else 1
        self._reader = reader
        return self

    def __call__(self) -> GeneratorLoader:
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self._iterable:
            raise Error(
                "config",
                "DataLoader.from_generator(iterable=False) is not for a loop",
                "call start() and then Executor.run without feed, or make it with iterable=True",
            )
        self._loop = _passes.Loop(self._steps(iter(self._begin())))
        return self._loop

    def __next__(self) -> Any:
        """What the loop that iter() began last gives next. Throws: StopIteration, TypeError without one."""
        if self._loop is None:
            raise TypeError("next(DataLoader) before iter(DataLoader)")
        return next(self._loop)

    next = __next__  # Python 2's name

    def _steps(self, batches):
        while step := list(itertools.islice(batches, self._places)):
            if len(step) < self._places and self.drop_last:
                return
            step = [[_tensor(part) for part in as_list(batch)] for batch in step]
            yield step if self._return_list else [feed for batch in step for feed in named(self.names, batch)]

    def start(self) -> None:
        """Begins a pass. Throws: Error(config) when one is under way."""
        self._check_started_by_hand("start")
        if self._pass is not None:
            raise Error("config", "DataLoader.start(): it is started already", "call reset() after each pass")
        self._pass = self._begin()

    def reset(self) -> None:
        """Ends the pass; the reader is done with its batch and closed when this returns."""
        self._check_started_by_hand("reset")
        if self._pass is not None:
            self._pass.close()
            self._pass = None

    def take(self) -> dict[str, Any]:
        """{name: array} for one run of the program. Throws: EOFException, Error(config) before start()."""
        if self._pass is None:
            raise Error(
                "config",
                f"the program reads {', '.join(self.names)} from a DataLoader that is not started",
                "call its start() before Executor.run, or feed these variables",
            )
        try:
            return named(self.names, next(self._pass))[0]
        except StopIteration:
            raise EOFException("the DataLoader has no more batches") from None

    def _begin(self):
        if self._reader is None:
            raise Error(
                "config",
                "DataLoader.from_generator: there is nothing to read",
                "call set_sample_generator, set_sample_list_generator or set_batch_generator first",
            )
        if self._in_process:
            return in_own_process(self._reader, self._capacity, _arrays)
        reading = _ReadAhead(self._reader, self._capacity)
        self._reading = weakref.ref(reading)  # a loop that is left ends its pass
        return reading

    def _parts(self, examples):
        examples = list(examples)  # a zip() is read once
        for example in examples:
            if len(example) != len(self.names):
                names = ", ".join(self.names)
                raise Error(
                    "data",
                    f"an example has {len(example)} parts, feed_list has {len(self.names)}: {names}",
                    "let each example have a part for each variable, in the order of feed_list",
                )
        return zip(*examples)

    def _check_started_by_hand(self, call):
        if self._iterable:
            raise Error(
                "config",
                f"DataLoader.{call}() of a loader that is for a loop",
                "make it with DataLoader.from_generator(iterable=False)",
            )


class Queue:
    """The batches of a pass that wait."""

    def __init__(self, reading: Any, capacity: int) -> None:
        self._reading, self._capacity = reading, capacity

    def size(self) -> int:
        """How many wait now; 0 for a process of its own, which does not tell."""
        return 0 if self._reading is None else len(self._reading)

    def capacity(self) -> int:
        """How many may wait."""
        return self._capacity


class PyReader:
    """The older name of DataLoader.from_generator, with decorate_ for set_."""

    def __init__(
        self,
        feed_list: Sequence[Variable | str] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
    ) -> None:
        loader = GeneratorLoader(
            feed_list or (), capacity, use_double_buffer, iterable, return_list, False, True
        )
        self.start, self.reset = loader.start, loader.reset
        self.iterable = loader.iterable
        self.decorate_sample_generator = loader.set_sample_generator
        self.decorate_sample_list_generator = loader.set_sample_list_generator
        self.decorate_batch_generator = loader.set_batch_generator
        self._loader = loader

    @property
    def queue(self) -> Queue:
        """GeneratorLoader.queue."""
        return self._loader.queue

    def __call__(self) -> PyReader:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(self._loader)

    def __next__(self) -> Any:
        return next(self._loader)

    next = __next__


def _tensor(part):
    return part if isinstance(part, LoDTensor) else LoDTensor(part)


def in_own_process(reader: Reader, ahead: int, collate: Callable[[Any], Any] | None = None) -> Iterator[Any]:
    """An iterator over what `reader` gives in a process of its own, which keeps up to `ahead` of it ready."""
    work = Work(_Stream(reader), by_number=False, batched=False, collate=collate or _same)
    workers = Workers(work, 1, None, _seeds.draw(), 0)
    return _passes.WorkerPass(workers, itertools.repeat(1), ahead, _same, None, Counted())


def _same(value):
    return value


class _ReadAhead:
    """One pass of a thread over a reader."""

    def __init__(self, reader, capacity):
        self._buffer = _passes.Buffer(_made(reader), capacity)

    def __iter__(self):
        return self

    def __next__(self):
        return self._buffer.take()

    def __len__(self):
        return len(self._buffer)

    def close(self):
        """Returns when the thread has ended."""
        self._buffer.stop()
        self._buffer.join()

    def __del__(self):
        self._buffer.stop()


class _Stream(IterableDataset):
    """A reader as a data set."""

    def __init__(self, reader):
        self._reader = reader

    def __iter__(self):
        return iter(self._reader())


def _made(reader):
    for batch in reader():
        yield _arrays(batch)


def _arrays(batch):
    return [part if isinstance(part, LoDTensor) else numpy.asarray(part) for part in as_list(batch)]


def _sequence(array, inner):
    """The rows of one example, each of the shape `inner`; one of unknown sizes is what the rows have."""
    has_rows = array.ndim == len(inner) + 1 and all(
        wanted in (-1, size) for wanted, size in zip(inner, array.shape[1:])
    )
    return array if has_rows else array.reshape(-1, *inner)


def _column(variable, values):
    """The array of one variable: its type, and its shape where the examples' is another way to write it; of a
    variable of sequences a LoDTensor, an example's values one sequence, with lod_level=2 several."""
    if variable.lod_level:
        inner, outer = list(variable.shape[1:]), []
        if variable.lod_level == 2:
            outer = [[len(value) for value in values]]
            values = [sequence for value in values for sequence in value]
        sequences = [_sequence(numpy.asarray(value, dtype=variable.dtype.name), inner) for value in values]
        made = LoDTensor(numpy.concatenate(sequences))
        made.set_recursive_sequence_lengths([*outer, [len(sequence) for sequence in sequences]])
        return made
    # Stacked before it is converted: numpy.array(list of arrays) takes several times as long.
    array = (
        _collate.default_collate_fn(values) if isinstance(values[0], numpy.ndarray) else numpy.array(values)
    )
    array = array.astype(variable.dtype.name, copy=False)
    shape = variable.shape
    if array.ndim == len(shape) or sum(size < 0 for size in shape) > 1:
        return array
    try:
        return array.reshape(shape)
    except ValueError:
        raise Error(
            "data",
            f"a batch for {variable.name} has the shape {list(array.shape)}, the variable {list(shape)}",
            "let the examples have the variable's shape without its first size",
        ) from None

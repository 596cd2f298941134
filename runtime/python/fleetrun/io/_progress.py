"""How far a pass over a DataLoader is, for state_dict(): by the batches that the script got, however many
were read ahead."""

import collections
import contextlib
import random
import zlib
from typing import Any

import numpy

from fleetrun._error import Error
from fleetrun.io.batch_sampler import InfiniteBatchSampler


def keeps_state(sampler):
    """Whether this batch sampler says itself where it is."""
    inner = sampler.batch_sampler if isinstance(sampler, InfiniteBatchSampler) else sampler
    return hasattr(inner, "state_dict") and hasattr(inner, "load_state_dict")


class Told:
    """A pass whose batch sampler has a state: each batch goes with the sampler's state after it."""

    def __init__(self, sampler):
        self._sampler = sampler
        self._drawn: Any = collections.deque()
        self._state: Any = sampler.state_dict()

    def tasks(self, sampler):
        """The tasks of `sampler`, noted on their way."""
        for task in sampler:
            self._drawn.append(self._sampler.state_dict())
            yield task

    def given(self):
        """The script gets the next batch."""
        self._state = self._drawn.popleft()

    def finished(self):
        """The script knows that there are no more."""
        self._state = None

    def state(self):
        """For state_dict()."""
        return {"batch_sampler": self._sampler.state_dict() if self._state is None else self._state}


class Counted:
    """A pass of which the batches are counted: a later one asks for them again, and leaves them out.

    start: what state() said of an earlier pass, which this one continues."""

    def __init__(self, start=None):
        self._drawn: Any = collections.deque()
        self._start = start
        self._begun: dict[str, Any] = {}
        self._batches = self._checksum = self._sum = 0

    def tasks(self, sampler):
        """The tasks of `sampler` that are left, noted on their way. Throws: Error(data) where those before
        them are not what they were."""
        tasks = self._noted(sampler)
        self._begun = {"numpy": numpy.random.get_state(), "random": random.getstate()}
        if self._start is None:
            return tasks
        with self._as_then():
            for _ in range(self._start["batches"]):
                if next(tasks, self) is self:
                    break
                self.given()
        if (self._batches, self._checksum) != (self._start["batches"], self._start["checksum"]):
            raise Error(
                "data",
                f"DataLoader: its first {self._start['batches']} batches are of other examples than those "
                "that were read before state_dict()",
                "give the batch_sampler a seed of its own, or state_dict() and load_state_dict()",
            )
        return tasks

    def given(self):
        """The script gets the next batch."""
        self._batches += 1
        if self._drawn:  # of a stream nothing was noted
            self._checksum = self._drawn.popleft()

    def finished(self):
        """The script knows that there are no more."""
        self._batches = self._checksum = 0
        self._begun = {}

    def state(self):
        """For state_dict()."""
        state: dict[str, Any] = {"batches": self._batches, "checksum": self._checksum}
        if self._batches and self._begun:
            kind, words, *rest = self._begun["numpy"]
            state["numpy"] = [kind, [int(word) for word in words], *rest]
            version, numbers, gauss = self._begun["random"]
            state["random"] = [version, list(numbers), gauss]
        return state

    def _noted(self, sampler):
        for task in sampler:
            self._sum = zlib.crc32(_bytes(task), self._sum)
            self._drawn.append(self._sum)
            yield task

    @contextlib.contextmanager
    def _as_then(self):
        """With the random numbers that the earlier pass began with."""
        numbers, others = numpy.random.get_state(), random.getstate()
        start = self._start
        if "numpy" in start:
            kind, words, *rest = start["numpy"]
            numpy.random.set_state((kind, numpy.array(words, numpy.uint32), *rest))
            random.setstate((start["random"][0], tuple(start["random"][1]), start["random"][2]))
            self._begun = {"numpy": numpy.random.get_state(), "random": random.getstate()}
        try:
            yield
        finally:
            numpy.random.set_state(numbers)
            random.setstate(others)


def _bytes(task):
    """The same for equal numbers, whatever their types."""
    try:
        numbers = numpy.asarray(task)
    except ValueError:  # lists of several lengths
        return repr(task).encode()
    return numbers.astype(numpy.int64).tobytes() if numbers.dtype.kind in "iu" else repr(task).encode()

"""Samplers: in which order the examples of a data set are read. Random ones draw from numpy's global
generator, as Paddle's do, so numpy.random.seed() makes them repeatable and gives Paddle's very order."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Any

import numpy

from fleetrun._error import Error

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "above_zero", "RandomSampler", "Sampler", "SequenceSampler", "SubsetRandomSampler",
    "WeightedRandomSampler",
]  # fmt: skip


class Sampler:
    """Gives the numbers of examples: a subclass has __iter__()."""

    def __init__(self, data_source: Sized | None = None) -> None:
        self.data_source: Any = data_source

    def __iter__(self) -> Iterator[Any]:
        raise Error("config", f"{type(self).__name__} has no __iter__", "define __iter__(self) in it")


class SequenceSampler(Sampler):
    """0, 1, 2, …"""

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """Numbers at random, each once, or with `replacement`. num_samples: how many, all when not given.
    generator: an iterator that gives the numbers instead. Throws: Error(config)."""

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Iterator[int] | None = None,
    ) -> None:
        super().__init__(data_source)
        self.replacement = replacement
        self._num_samples = (
            None if num_samples is None else above_zero("RandomSampler", "num_samples", num_samples)
        )
        self.generator = generator
        if not isinstance(replacement, bool):
            raise Error("config", f"RandomSampler: replacement={replacement!r}", "it is True or False")
        if not replacement and self.num_samples > len(data_source):
            raise Error(
                "config",
                f"RandomSampler: num_samples={num_samples}, the data set has {len(data_source)}",
                "draw fewer, or with replacement=True",
            )

    @property
    def num_samples(self) -> int:
        """How many numbers a pass gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        if self.generator:
            return iter([index for index, _ in zip(self.generator, range(self.num_samples))])
        return iter(
            numpy.random.choice(len(self.data_source), self.num_samples, replace=self.replacement).tolist()
        )

    def __len__(self) -> int:
        return self.num_samples


class WeightedRandomSampler(Sampler):
    """num_samples numbers, drawn with these weights. Shape: weights [n], or [m, n] for num_samples from each
    row.
    Throws: Error(config)."""

    def __init__(self, weights: ArrayLike, num_samples: int, replacement: bool = True) -> None:
        super().__init__()
        self.weights = weights
        self.num_samples = above_zero("WeightedRandomSampler", "num_samples", num_samples)
        self.replacement = replacement
        if not isinstance(replacement, bool):
            raise Error(
                "config", f"WeightedRandomSampler: replacement={replacement!r}", "it is True or False"
            )
        self._rows = _rows(weights)
        fewest = int((self._rows > 0).sum(axis=1).min())
        if not replacement and fewest < self.num_samples:
            raise Error(
                "config",
                f"WeightedRandomSampler: num_samples={num_samples}, and {fewest} weights are above 0",
                "draw fewer, or with replacement=True",
            )

    def __iter__(self) -> Iterator[int]:
        drawn = [
            numpy.random.choice(len(row), self.num_samples, self.replacement, row / row.sum())
            for row in self._rows
        ]
        return iter(numpy.concatenate(drawn).tolist())

    def __len__(self) -> int:
        return self.num_samples * len(self._rows)


class SubsetRandomSampler(Sampler):
    """`indices` in random order: numpy's, not that of Paddle's own random numbers. Throws: Error(config)."""

    def __init__(self, indices: Sequence[int]) -> None:
        super().__init__()
        if len(indices) == 0:
            raise Error("config", "SubsetRandomSampler: no indices are given")
        self.indices = indices

    def __iter__(self) -> Iterator[int]:
        return (self.indices[place] for place in numpy.random.permutation(len(self.indices)).tolist())

    def __len__(self) -> int:
        return len(self.indices)


def above_zero(owner: str, name: str, value: Any) -> int:
    """`value` as int. Throws: Error(config) naming it when it is not a whole number above 0."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise Error("config", f"{owner}: {name}={value!r}", "it is a whole number above 0")
    return int(value)


def _rows(weights):
    weights = numpy.asarray(weights)
    rows = weights.reshape(-1, weights.shape[-1]) if weights.ndim in (1, 2) else None
    if rows is None or not (
        numpy.isfinite(rows).all() and (rows >= 0).all() and (rows > 0).any(axis=1).all()
    ):
        raise Error(
            "config",
            f"WeightedRandomSampler: weights of shape {list(weights.shape)} that cannot be drawn from",
            "one or two axes, finite numbers of at least 0, one above 0 in each row",
        )
    return rows

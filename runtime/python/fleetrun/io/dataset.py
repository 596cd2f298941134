"""Data sets: things with examples, by number (Dataset) or one after the other (IterableDataset)."""

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fleetrun._arguments import as_list
from fleetrun._error import Error

__all__ = [
    "ChainDataset", "ComposeDataset", "ConcatDataset", "Dataset", "IterableDataset", "random_split",
    "Subset", "TensorDataset",
]  # fmt: skip


class Dataset:
    """Examples by number: a subclass has __getitem__(index) and __len__()."""

    def __getitem__(self, idx: Any) -> Any:
        raise Error(
            "config", f"{type(self).__name__} has no __getitem__", "define __getitem__(self, idx) in it"
        )

    def __len__(self) -> int:
        raise Error("config", f"{type(self).__name__} has no __len__", "define __len__(self) in it")


class IterableDataset(Dataset):
    """Examples one after the other: a subclass has __iter__(). With num_workers > 0 every worker reads a copy
    of it from the beginning, so let __iter__ take the part that get_worker_info() says."""

    def __iter__(self) -> Iterator[Any]:
        raise Error("config", f"{type(self).__name__} has no __iter__", "define __iter__(self) in it")

    def __getitem__(self, idx: Any) -> Any:
        raise Error("config", f"{type(self).__name__} is an IterableDataset, whose examples have no numbers")

    def __len__(self) -> int:
        # A TypeError, so that list() and the like take it for "unknown".
        raise TypeError(f"{type(self).__name__} is an IterableDataset, which has no length")


class TensorDataset(Dataset):
    """Example i is (tensor[i], …) of arrays (or PyTorch tensors) with equal first sizes. Throws:
    Error(config)."""

    def __init__(self, tensors: Sequence[Any]) -> None:
        self.tensors = list(tensors)
        sizes = sorted({len(tensor) for tensor in self.tensors})
        if len(sizes) != 1:
            raise Error(
                "config",
                f"TensorDataset: the tensors' first sizes are {sizes}",
                "give it tensors of one first size",
            )

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class ComposeDataset(Dataset):
    """Example i has the fields of example i of each of `datasets`, which are equally long. Throws:
    Error(config)."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = _by_number("ComposeDataset", datasets)
        lengths = sorted({len(dataset) for dataset in self.datasets})
        if len(lengths) != 1:
            raise Error(
                "config", f"ComposeDataset: the lengths are {lengths}", "give it data sets of one length"
            )

    def __len__(self) -> int:
        return len(self.datasets[0])

    def __getitem__(self, idx: Any) -> tuple[Any, ...]:
        fields: list[Any] = []
        for dataset in self.datasets:
            fields.extend(as_list(dataset[idx]))
        return tuple(fields)


class ConcatDataset(Dataset):
    """The examples of `datasets`, one set after the other. Throws: Error(config)."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = _by_number("ConcatDataset", datasets)
        self.cumulative_sizes = list(itertools.accumulate(len(dataset) for dataset in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: Any) -> Any:
        if not -len(self) <= idx < len(self):
            raise IndexError(f"example {idx} of a ConcatDataset of {len(self)}")
        idx %= len(self)
        place = bisect.bisect_right(self.cumulative_sizes, idx)
        return self.datasets[place][idx - (self.cumulative_sizes[place - 1] if place else 0)]


class ChainDataset(IterableDataset):
    """The examples of several IterableDatasets, one set after the other. Throws: Error(config)."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise Error(
                    "config",
                    f"ChainDataset: {type(dataset).__name__} is not an IterableDataset",
                    "use ConcatDataset for data sets with numbered examples",
                )

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)


class Subset(Dataset):
    """The examples of `dataset` that `indices` name, in that order."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> Any:
        return self.dataset[self.indices[idx]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[int], generator: Any = None) -> list[Subset]:
    """Disjoint Subsets of `dataset` at random.

    lengths: numbers that add up to len(dataset), or shares that add up to 1 (rounded down, what is left over
    goes to the first ones). generator: a numpy.random.Generator or RandomState; numpy's global one when not
    given. The order is numpy's, not that of Paddle's own random numbers. Throws: Error(config).
    """
    import numpy

    lengths = list(lengths)
    if any(isinstance(length, float) for length in lengths) and math.isclose(sum(lengths), 1):
        shares, lengths = lengths, [math.floor(len(dataset) * share) for share in lengths]
        for place in range(len(dataset) - sum(lengths)):
            lengths[place % len(shares)] += 1
    if sum(lengths) != len(dataset) or min(lengths, default=0) < 0:
        raise Error(
            "config",
            f"random_split: the lengths {lengths} make {sum(lengths)}, the data set has {len(dataset)}",
            "give lengths that add up to the data set's, or shares that add up to 1",
        )
    order = (generator or numpy.random).permutation(len(dataset)).tolist()
    ends = list(itertools.accumulate(lengths))
    return [Subset(dataset, order[end - length : end]) for end, length in zip(ends, lengths)]


def _by_number(owner, datasets):
    datasets = list(datasets)
    if not datasets:
        raise Error("config", f"{owner}: no data set is given")
    for dataset in datasets:
        if isinstance(dataset, IterableDataset):
            raise Error(
                "config",
                f"{owner}: {type(dataset).__name__} is an IterableDataset, whose examples have no numbers",
                "use ChainDataset for those",
            )
    return datasets

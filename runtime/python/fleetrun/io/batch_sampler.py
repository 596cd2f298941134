"""Batch samplers: which examples make a batch, and which batches are this trainer's."""

import math
import numbers
from collections.abc import Iterable, Iterator
from typing import Any

import numpy

from fleetrun._error import Error
from fleetrun.io.dataset import IterableDataset
from fleetrun.io.sampler import RandomSampler, Sampler, SequenceSampler, above_zero

__all__ = ["BatchSampler", "DistributedBatchSampler", "InfiniteBatchSampler"]


class BatchSampler(Sampler):
    """Lists of batch_size numbers.

    dataset: what has the examples, read in order or with `shuffle`; or sampler: a Sampler, or anything that
    gives numbers.
    drop_last: without the last batch when it is short. Throws: Error(config).
    """

    def __init__(
        self,
        dataset: Any = None,
        sampler: Iterable[Any] | None = None,
        shuffle: bool = False,
        batch_size: int = 1,
        drop_last: bool = False,
    ) -> None:
        super().__init__(dataset)
        if (dataset is None) == (sampler is None):
            raise Error("config", "BatchSampler: give it either a dataset or a sampler")
        if sampler is not None and shuffle:
            raise Error(
                "config", "BatchSampler: shuffle=True and a sampler", "give it a RandomSampler instead"
            )
        if isinstance(dataset, IterableDataset):
            raise Error(
                "config",
                f"BatchSampler: {type(dataset).__name__} is an IterableDataset, whose examples have no "
                "numbers",
                "give it to the DataLoader with batch_size",
            )
        if sampler is None:
            sampler = RandomSampler(dataset) if shuffle else SequenceSampler(dataset)
        self.sampler: Any = sampler
        self.shuffle = shuffle
        self.batch_size = above_zero("BatchSampler", "batch_size", batch_size)
        self.drop_last = bool(drop_last)

    def __iter__(self) -> Iterator[list[int]]:
        batch = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        return _batches(len(self.sampler), self.batch_size, self.drop_last)


class DistributedBatchSampler(BatchSampler):
    """The batches of one trainer: the trainers take turns, batch by batch, and share what is left at the end.

    num_replicas, rank: how many trainers there are and which one this is; from the job's environment when not
    given.
    shuffle: another order in each epoch, the same on all trainers; the epoch's number is its seed, see
    set_epoch().
    drop_last: without the last batch when it is short. Up to here all is Paddle's, number by number.
    fleetrun's own:
    shuffle_when: "before_split" (Paddle's: any trainer may get any example) or "after_split" (a trainer keeps
    its part of the examples in all epochs, and reads it in an order of its own).
    uneven: when the trainers do not divide the examples, "pad" (Paddle's: the first examples are read again
    until they do), "drop" (the surplus, fewer than there are trainers, is left out of this epoch), or "keep"
    (every example exactly once; some trainers then have one example more, and with that perhaps one batch
    more, than others: not for training whose steps wait for each other). seed: added to the epoch's number.
    Throws: Error(config).
    """

    shuffle_when: str
    uneven: str
    seed: int
    num_samples: int
    total_size: int

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
        *,
        shuffle_when: str = "before_split",
        uneven: str = "pad",
        seed: int = 0,
    ) -> None:
        from fleetrun.distributed import ranks

        Sampler.__init__(self, dataset)
        self.dataset = dataset
        self.epoch = 0
        self.batch_size = above_zero("DistributedBatchSampler", "batch_size", batch_size)
        self.nranks = ranks.get_world_size() if num_replicas is None else num_replicas
        self.nranks = above_zero("DistributedBatchSampler", "num_replicas", self.nranks)
        self.local_rank = ranks.get_rank() if rank is None else rank
        if not isinstance(self.local_rank, numbers.Integral) or not 0 <= self.local_rank < self.nranks:
            raise Error(
                "config",
                f"DistributedBatchSampler: rank={self.local_rank!r} of {self.nranks} trainers",
                "ranks count from 0; without rank and num_replicas PADDLE_TRAINER_ID and "
                "PADDLE_TRAINERS_NUM say them",
            )
        self.shuffle_when, self.uneven, self.seed = shuffle_when, uneven, int(seed)
        for name, value, known in (
            ("shuffle_when", shuffle_when, ("before_split", "after_split")),
            ("uneven", uneven, ("pad", "drop", "keep")),
            ("shuffle", shuffle, (True, False)),
            ("drop_last", drop_last, (True, False)),
        ):
            if value not in known:
                raise Error(
                    "config",
                    f"DistributedBatchSampler: {name}={value!r}",
                    f"it is one of {', '.join(map(repr, known))}",
                )
        self.shuffle, self.drop_last = bool(shuffle), bool(drop_last)
        share = len(dataset) / self.nranks
        self.num_samples = {"pad": math.ceil, "drop": math.floor, "keep": math.floor}[uneven](share)
        self.total_size = self.num_samples * self.nranks
        if uneven == "keep":
            self.total_size = len(dataset)
            self.num_samples += self.local_rank < len(dataset) % self.nranks

    def __iter__(self) -> Iterator[list[int]]:
        before = self.shuffle and self.shuffle_when == "before_split"
        epoch = self.seed + self.epoch
        self.epoch += self.shuffle
        if before and self.uneven == "drop":
            # Shuffled first, so that it is not the same examples that are left out of every epoch.
            mine = self._part(_shuffled(numpy.arange(len(self.dataset)), epoch)[: self.total_size])
        else:
            order = numpy.resize(numpy.arange(len(self.dataset)), self.total_size)
            mine = self._part(_shuffled(order, epoch) if before else order)
        if self.shuffle and not before:
            mine = _shuffled(mine, (epoch, self.local_rank))
        mine = mine.tolist()
        for start in range(0, len(mine), self.batch_size):
            if start + self.batch_size <= len(mine) or not self.drop_last:
                yield mine[start : start + self.batch_size]

    def __len__(self) -> int:
        return _batches(self.num_samples, self.batch_size, self.drop_last)

    def set_epoch(self, epoch: int) -> None:
        """The number of the next epoch, which is the seed of its order; without it each pass counts one
        on."""
        self.epoch = int(epoch)

    def _part(self, order):
        """This trainer's numbers out of all trainers': whole batches in turn, then an equal share of the
        rest."""
        whole = len(order) // (self.batch_size * self.nranks) * self.batch_size * self.nranks
        turns = order[:whole].reshape(-1, self.nranks, self.batch_size)[:, self.local_rank].reshape(-1)
        return numpy.concatenate([turns, numpy.array_split(order[whole:], self.nranks)[self.local_rank]])


class InfiniteBatchSampler(Sampler):
    """The batches of another batch sampler, epoch after epoch without end, so that workers never run dry
    between epochs. __len__ is that of one epoch; a set_epoch() of the other is called with 0, 1, 2, …"""

    def __init__(self, batch_sampler: Any) -> None:
        super().__init__(getattr(batch_sampler, "data_source", None))
        self.batch_sampler = batch_sampler
        self.batch_size = getattr(batch_sampler, "batch_size", None)

    def __iter__(self) -> Iterator[Any]:
        epoch = getattr(self.batch_sampler, "epoch", 0)
        while True:
            if hasattr(self.batch_sampler, "set_epoch"):
                self.batch_sampler.set_epoch(epoch)
            any_batch = False
            for batch in self.batch_sampler:
                any_batch = True
                yield batch
            if not any_batch:
                raise Error(
                    "data",
                    "InfiniteBatchSampler: an epoch without a batch",
                    "the data set is empty, or smaller than a batch with drop_last=True",
                )
            epoch += 1

    def __len__(self) -> int:
        return len(self.batch_sampler)


def _batches(examples, batch_size, drop_last):
    return examples // batch_size if drop_last else -(-examples // batch_size)


def _shuffled(order, seed):
    """The order that Paddle makes of the list with this seed; on an array, which takes a twentieth of the
    time."""
    order = order.copy()
    numpy.random.RandomState(seed).shuffle(order)
    return order

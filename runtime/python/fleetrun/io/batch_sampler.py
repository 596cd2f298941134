"""Batch samplers: which examples make a batch, and which batches are this trainer's."""

import math
import numbers
from collections.abc import Iterable, Iterator, Mapping
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
    state_dict(), load_state_dict(): where it is; another number of trainers goes on from there, and shares
    what is left of the epoch. One trainer's state is every trainer's.
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
        # Of an epoch: its number, and who has read how much of it so far, [trainers, batch_size, batches].
        self._at: tuple[int, list[list[int]]] | None = None
        self._resume: tuple[int, list[list[int]]] | None = None

    def __iter__(self) -> Iterator[list[int]]:
        epoch, (_, cuts) = self.epoch, self._resume or (self.epoch, [])
        self._resume = None
        self.epoch += self.shuffle
        mine = [self.nranks, self.batch_size]
        *earlier, last = cuts or [[*mine, 0]]
        if last[:2] != mine:
            earlier, last = cuts, [*mine, 0]
        order = self._order(epoch, earlier, *mine)
        part = self._part(order, epoch, self.local_rank, *mine).tolist()
        for batch in range(last[2], -(-len(part) // self.batch_size)):
            numbers = part[batch * self.batch_size : (batch + 1) * self.batch_size]
            if len(numbers) == self.batch_size or not self.drop_last:
                self._at = epoch, [*earlier, [*mine, batch + 1]]
                yield numbers
        self._at = None

    def __len__(self) -> int:
        return _batches(self.num_samples, self.batch_size, self.drop_last)

    def set_epoch(self, epoch: int) -> None:
        """The number of the next epoch, which is the seed of its order; without it each pass counts one
        on. After load_state_dict(), that state's epoch goes on where it was, any other begins."""
        self.epoch = int(epoch)
        self._at = None
        if self._resume and self._resume[0] != self.epoch:
            self._resume = None

    def state_dict(self) -> dict[str, Any]:
        """Where it is, after the batch that it gave last; of plain values. A DataLoader reads ahead: its
        state_dict() counts the batches that came out of it."""
        epoch, cuts = self._at or self._resume or (self.epoch, [])
        return {**self._settings(), "epoch": epoch, "cuts": [list(cut) for cut in cuts]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next pass reads what is left of that epoch. By as many trainers with as large batches it is
        what an uninterrupted epoch gives; by others each example that nobody has read, once, and then what
        `uneven` says. Throws: Error(config) for the state of another data set or order."""
        for name, value in self._settings().items():
            if state.get(name) != value:
                raise Error(
                    "config",
                    f"DistributedBatchSampler: {name}={value!r}, and in the state {state.get(name)!r}",
                    "make it with what it had when state_dict() was called",
                )
        self.epoch = int(state["epoch"])
        self._at = None
        self._resume = (self.epoch, [[int(number) for number in cut] for cut in state["cuts"]])

    def _settings(self):
        """What the order of an epoch depends on, besides its number."""
        names = ("shuffle", "shuffle_when", "uneven", "seed")
        return {"examples": len(self.dataset)} | {name: getattr(self, name) for name in names}

    def _order(self, epoch, cuts, nranks, batch_size):
        """The numbers of all trainers, in the order in which these trainers take them after `cuts`."""
        left = None
        for ranks, size, batches in cuts:
            order = self._fitted(epoch, left, ranks)
            parts = [self._part(order, epoch, rank, ranks, size)[: batches * size] for rank in range(ranks)]
            left = _distinct(order[~numpy.isin(order, numpy.concatenate(parts))])
        return self._fitted(epoch, left, nranks)

    def _fitted(self, epoch, left, nranks):
        """`left`, or an epoch's order where it is None, padded where that is wanted."""
        order = numpy.arange(len(self.dataset)) if left is None else left
        if self.uneven == "pad":
            order = numpy.resize(order, -(-len(order) // nranks) * nranks)
        # Shuffled before "drop" leaves something out, so that it is not the same examples in every epoch.
        fresh = left is None and self.shuffle and self.shuffle_when == "before_split"
        return _shuffled(order, epoch + self.seed) if fresh else order

    def _part(self, order, epoch, rank, nranks, batch_size):
        """One trainer's numbers out of all trainers': whole batches in turn, then an equal share of the
        rest."""
        if self.uneven == "drop":
            order = order[: len(order) // nranks * nranks]
        whole = len(order) // (batch_size * nranks) * batch_size * nranks
        turns = order[:whole].reshape(-1, nranks, batch_size)[:, rank].reshape(-1)
        part = numpy.concatenate([turns, numpy.array_split(order[whole:], nranks)[rank]])
        after = self.shuffle and self.shuffle_when == "after_split"
        return _shuffled(part, (epoch + self.seed, rank)) if after else part


class InfiniteBatchSampler(Sampler):
    """The batches of another batch sampler, epoch after epoch without end, so that workers never run dry
    between epochs. __len__ is that of one epoch; a set_epoch() of the other is called with 0, 1, 2, …"""

    def __init__(self, batch_sampler: Any) -> None:
        super().__init__(getattr(batch_sampler, "data_source", None))
        self.batch_sampler = batch_sampler
        self.batch_size = getattr(batch_sampler, "batch_size", None)

    def __iter__(self) -> Iterator[Any]:
        epoch = getattr(self.batch_sampler, "epoch", 0)
        was_empty = False  # the last one may be, where load_state_dict() came at its end
        while True:
            if hasattr(self.batch_sampler, "set_epoch"):
                self.batch_sampler.set_epoch(epoch)
            is_empty = True
            for batch in self.batch_sampler:
                is_empty = False
                yield batch
            if is_empty and was_empty:
                raise Error(
                    "data",
                    "InfiniteBatchSampler: an epoch without a batch",
                    "the data set is empty, or smaller than a batch with drop_last=True",
                )
            was_empty = is_empty
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


def _distinct(order):
    """Each number once, where it comes first."""
    return order[numpy.sort(numpy.unique(order, return_index=True)[1])]

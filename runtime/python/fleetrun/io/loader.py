"""DataLoader: batches of a data set, read ahead in a thread or in worker processes.

Source: documents 001 and 004. The signature and what comes out are Paddle 2.6.2's; the worker processes are
fleetrun's own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fleetrun._error import Error
from fleetrun.io import _passes, _seeds
from fleetrun.io._feeds import check_places, feed_names, named, torch_or_numpy
from fleetrun.io._progress import Counted, Told, keeps_state
from fleetrun.io._worker import Work
from fleetrun.io._workers import Workers
from fleetrun.io.batch_sampler import BatchSampler, InfiniteBatchSampler
from fleetrun.io.dataset import IterableDataset
from fleetrun.io.sampler import above_zero

if TYPE_CHECKING:
    from fleetrun._variable import Variable
    from fleetrun.io.dataset_loader import DatasetLoader
    from fleetrun.io.generator_loader import GeneratorLoader

__all__ = ["DataLoader"]


class DataLoader:
    """`for batch in loader` (or loader()) gives the batches of `dataset`, as numpy arrays.

    dataset: a Dataset (anything with [i] and len()) or an IterableDataset. batch_sampler: gives the lists of
    numbers, such as a DistributedBatchSampler; or batch_size, shuffle and drop_last; batch_size=None gives
    single examples. collate_fn(examples): makes a batch; the default stacks arrays and numbers, as Paddle
    does.
    num_workers: processes that make the batches, each a fork of this one with its own copy of `dataset`;
    batches come in the sampler's order all the same, and lie in memory shared with the worker: what comes out
    is not copied, and the memory goes back to the worker when the last array of a batch is dropped. 0: made
    in this process, by a thread where use_buffer_reader (a data set that draws from numpy's global generator
    then shares it with the script; workers have their own).
    prefetch_factor: batches kept ready, by each worker or by the thread. timeout: seconds to wait for a
    worker's batch, 0 for as long as it lives. worker_init_fn(id): called first in each worker.
    persistent_workers: kept from pass to pass.
    feed_list, return_list: with return_list=False a batch is [{name: array}], as Executor.run(feed=) takes
    it. places: the CPU; of n places each step is a list of n batches, for the replicas of a CompiledProgram,
    and the last batches are left out where there is not one for each.
    use_shared_memory: accepted; the memory has no name, so a small /dev/shm is not a reason to turn it off.
    fleetrun's own: to="torch" gives PyTorch tensors of the same memory. infinite: epoch after epoch without
    end, the workers never running dry; len() is that of one epoch. state_dict(), load_state_dict(): a run
    that starts again goes on with the batch after the last that the script got.

    Seeds: random and numpy.random in a worker depend on numpy's generator here and on the worker's number, as
    in Paddle.
    Throws: what the data set's code throws, with the worker's traceback as its cause and the example's number
    in it; Error(host) when a worker died, naming the signal; Error(timeout); Error(config), Error(data).
    """

    def __init__(
        self,
        dataset: Any,
        feed_list: Sequence[Variable | str] | None = None,
        places: Any = None,
        return_list: bool = True,
        batch_sampler: Any = None,
        batch_size: int | None = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        num_workers: int = 0,
        use_buffer_reader: bool = True,
        prefetch_factor: int = 2,
        use_shared_memory: bool = True,
        timeout: float = 0,
        worker_init_fn: Callable[[int], object] | None = None,
        persistent_workers: bool = False,
        *,
        to: str = "numpy",
        infinite: bool = False,
    ) -> None:
        by_number = not isinstance(dataset, IterableDataset)
        _check(
            dataset,
            by_number,
            feed_list,
            return_list,
            batch_sampler,
            batch_size,
            shuffle,
            drop_last,
            num_workers,
            timeout,
        )
        self._places, self._listed = check_places(places), bool(return_list)
        self.dataset = dataset
        self.num_workers = int(num_workers)
        self.prefetch_factor = above_zero("DataLoader", "prefetch_factor", prefetch_factor)
        self.use_buffer_reader = bool(use_buffer_reader)
        self.use_shared_memory = bool(use_shared_memory)
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.batch_size: Any = None if batch_sampler is not None else batch_size
        if by_number and batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(dataset, shuffle=shuffle, batch_size=batch_size, drop_last=drop_last)
        self.batch_sampler = batch_sampler
        self._infinite = bool(infinite)
        self._work = Work(
            dataset,
            by_number,
            batch_sampler is not None or batch_size is not None,
            collate_fn,
            bool(drop_last),
            self._infinite,
        )
        self._finish = _finisher(to, feed_list, return_list)
        self._keeps = bool(persistent_workers)
        self._kept: Any = None
        self._progress: Any = None
        self._resume: dict[str, Any] | None = None

    @staticmethod
    def from_generator(
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        use_multiprocess: bool = False,
        drop_last: bool = True,
    ) -> GeneratorLoader:
        """A GeneratorLoader: batches from a function of yours."""
        from fleetrun.io.generator_loader import GeneratorLoader

        return GeneratorLoader(
            feed_list or (), capacity, use_double_buffer, iterable, return_list, use_multiprocess, drop_last
        )

    @staticmethod
    def from_dataset(dataset: Any, places: Any, drop_last: bool = True) -> DatasetLoader:
        """A DatasetLoader: the batches of a QueueDataset or an InMemoryDataset."""
        from fleetrun.io.dataset_loader import DatasetLoader

        return DatasetLoader(dataset, places, drop_last)

    def __len__(self) -> int:
        if not self._work.by_number:
            raise TypeError("the DataLoader of an IterableDataset has no length")
        return len(self.dataset if self.batch_sampler is None else self.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        resume, self._resume = self._resume, None
        told = self._work.by_number and keeps_state(self.batch_sampler)
        streamed = resume and not self._work.by_number
        self._progress = Told(self.batch_sampler) if told else Counted(None if streamed else resume)
        batches = self._begin(self._progress)
        for _ in range(resume["batches"] if resume and streamed else 0):
            next(batches, None)  # of a stream, what came before is read again
        return batches if self._places == 1 else self._steps(batches)

    def _steps(self, batches):
        while len(step := list(itertools.islice(batches, self._places))) == self._places:
            yield step if self._listed else [feed for feeds in step for feed in feeds]

    def _begin(self, progress):
        """A pass of the tasks that are left."""
        if not self.num_workers:
            ahead = self.prefetch_factor if self.use_buffer_reader else 0
            tasks = self._tasks(progress)
            return _passes.LocalPass(self._work.fetcher(), tasks, ahead, self._finish, progress)
        workers = (
            self._kept
            if self._kept and self._kept.is_open
            else Workers(self._work, self.num_workers, self.worker_init_fn, _seeds.draw(), self.timeout)
        )
        self._kept = workers if self._keeps else None
        keeper = self if self._keeps else None
        return _passes.WorkerPass(
            workers, self._tasks(progress), self.prefetch_factor, self._finish, keeper, progress
        )

    __call__ = __iter__

    def state_dict(self) -> dict[str, Any]:
        """How far the newest pass is, of plain values: after the batches that the script got, whatever was
        read ahead; after the last one's end, before the next pass. With a DistributedBatchSampler (or any
        batch sampler with state_dict() and load_state_dict()) it is the sampler's: every trainer's, for any
        number of trainers."""
        if self._resume is not None:
            return dict(self._resume)
        told = self._work.by_number and keeps_state(self.batch_sampler)
        if told and self._progress is None:
            return {"batch_sampler": self.batch_sampler.state_dict()}
        state = {"batches": 0, "checksum": 0} if self._progress is None else self._progress.state()
        return state if self._work.by_number else {**state, "num_workers": self.num_workers}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next pass gives what comes after that state: no example twice, none left out. A batch sampler
        without a state of its own is asked for the batches before it once more, with numpy's and random's
        numbers as they were; the examples of a stream are read once more. Throws: Error(config) for the state
        of another kind of DataLoader; the pass throws Error(data) where a sampler gives other batches."""
        told = self._work.by_number and keeps_state(self.batch_sampler)
        wanted = {"batch_sampler"} if told else {"batches", "checksum"}
        if not wanted <= set(state):
            raise Error(
                "config",
                f"DataLoader: its state has {', '.join(sorted(wanted))}, and this one "
                f"{', '.join(map(str, state))}",
                "load it into a DataLoader of the same data set and batch sampler",
            )
        if not self._work.by_number and state.get("num_workers") != self.num_workers:
            raise Error(
                "config",
                f"DataLoader: num_workers={self.num_workers} for a stream that "
                f"{state.get('num_workers')} workers read when state_dict() was called",
                "take as many: each has a part of the stream",
            )
        self._progress = None
        self._resume = dict(state)
        if told:
            self.batch_sampler.load_state_dict(state["batch_sampler"])
            self._resume = None

    def close(self) -> None:
        """Ends workers that were kept for the next pass; so does dropping the DataLoader."""
        if self._kept:
            self._kept.close()

    def __del__(self) -> None:
        if getattr(self, "_kept", None):
            self.close()

    def _tasks(self, progress):
        """What the fetcher is asked for. The first task is drawn now, and with it a random sampler's order:
        in the caller's thread, where it belongs in the sequence of numpy's random numbers."""
        if not self._work.by_number:
            return itertools.repeat(self.batch_size or 1)
        sampler = self.batch_sampler if self._work.batched else range(len(self.dataset))
        if self._infinite:
            sampler = InfiniteBatchSampler(sampler)
        tasks = progress.tasks(sampler)
        first = list(itertools.islice(tasks, 1))
        return itertools.chain(first, tasks)


def _finisher(to, feed_list, return_list):
    """What makes of a worker's batch what the script gets."""
    convert = torch_or_numpy("DataLoader", to)
    if return_list:
        return convert
    names = feed_names(feed_list)
    return lambda batch: named(names, convert(batch))


def _check(
    dataset,
    by_number,
    feed_list,
    return_list,
    batch_sampler,
    batch_size,
    shuffle,
    drop_last,
    num_workers,
    timeout,
):
    if not return_list and not feed_list:
        raise Error(
            "config", "DataLoader: return_list=False without feed_list", "give it the variables as feed_list"
        )
    if not by_number and (shuffle or batch_sampler is not None):
        raise Error(
            "config",
            f"DataLoader: {type(dataset).__name__} is an IterableDataset, whose order is its own",
            "leave shuffle and batch_sampler out, or shuffle in its __iter__",
        )
    if batch_sampler is not None and (batch_size != 1 or shuffle or drop_last):
        raise Error(
            "config",
            "DataLoader: a batch_sampler, and batch_size, shuffle or drop_last",
            "give those to the batch_sampler",
        )
    if batch_size is not None:
        above_zero("DataLoader", "batch_size", batch_size)
    if num_workers < 0 or int(num_workers) != num_workers:
        raise Error(
            "config", f"DataLoader: num_workers={num_workers!r}", "it is a whole number of at least 0"
        )
    if timeout < 0:
        raise Error("config", f"DataLoader: timeout={timeout!r}", "it is a number of seconds, 0 for none")

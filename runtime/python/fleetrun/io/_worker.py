"""What runs in a worker process of a DataLoader: takes tasks from its channel, sends batches back."""

import contextlib
import ctypes
import dataclasses
import os
import pickle
import select
import signal
import sys
import threading
import traceback
from typing import Any

from fleetrun.io import _collate, _seeds
from fleetrun.io._kernel import open_pidfd
from fleetrun.io._slots import Arena, pack

# What a fetch gives that was stopped: None may be a batch.
STOPPED = object()


@dataclasses.dataclass(frozen=True)
class WorkerInfo:
    """Where this code runs: worker `id` of `num_workers`, with its own copy of `dataset`. `seed` is the same
    in all."""

    id: int
    num_workers: int
    dataset: object
    seed: int


_here = {"info": None}


def get_worker_info():
    """The WorkerInfo of the worker process that calls this, None anywhere else."""
    return _here["info"]


@dataclasses.dataclass(frozen=True)
class Work:
    """How batches are made of a data set; the same in the script's own process and in workers.

    by_number: whether the examples have numbers. batched: whether a task makes a batch or a single example.
    collate: the user's function, or None for the default. infinite: begin again at the end of an iterable
    data set."""

    dataset: object
    by_number: bool
    batched: bool
    collate: object = None
    drop_last: bool = False
    infinite: bool = False

    def fetcher(self):
        """A Fetcher of its own for each pass."""
        return Fetcher(self)


class Fetcher:
    """Reads examples. `position` says what is being read, for messages."""

    def __init__(self, work):
        self._work = work
        self.by_number = work.by_number
        self._stream: Any = None if work.by_number else iter(work.dataset)
        self.position = ""

    def fetch(self, task, allocate=None, is_stopped=lambda: False):
        """The batch of `task` (numbers, or how many examples of a stream), or STOPPED.

        allocate(bytes) gives what makes the arrays of the default batch. Throws: StopIteration at the end of
        a stream."""
        work = self._work
        examples = self._by_number(task, is_stopped) if work.by_number else self._in_turn(task, is_stopped)
        if examples is STOPPED:
            return STOPPED
        self.position = "the batch"
        if not work.batched:
            return (work.collate or _collate.as_it_is)(examples)
        if work.collate:
            return work.collate(examples)
        if allocate is None:
            return _collate.default_collate_fn(examples)
        tree = _collate.gather(examples)
        return _collate.fill(tree, allocate(_collate.bytes_of(tree)))

    def _by_number(self, task, is_stopped):
        if not self._work.batched:
            self.position = f"example {task}"
            return self._work.dataset[task]
        examples = []
        for index in task:
            if is_stopped():
                return STOPPED
            self.position = f"example {index}"
            examples.append(self._work.dataset[index])
        return examples

    def _in_turn(self, count, is_stopped):
        if not self._work.batched:
            return self._next()
        examples: list[Any] = []
        while len(examples) < count:
            if is_stopped():
                return STOPPED
            try:
                examples.append(self._next())
            except StopIteration:
                if not examples or self._work.drop_last:
                    raise
                break
        return examples

    def _next(self):
        self.position = "the data set's __iter__"
        try:
            return next(self._stream)
        except StopIteration:
            if not self._work.infinite:
                raise
        self._stream = iter(self._work.dataset)
        return next(self._stream)


def run(channel, parent, forked_by_main_thread, info, work, init):
    """A worker's life: `parent` is the process id of the script, `init` the user's worker_init_fn."""
    die_with(parent, forked_by_main_thread)
    # Ctrl-C goes to all processes of a terminal: the script decides. Its handlers are not for its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    _here["info"] = info
    _seeds.seed_worker(info.seed, info.id)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    failure = None
    try:
        if init is not None:
            init(info.id)
    except Exception as error:
        failure = error
    with contextlib.suppress(EOFError, ConnectionError):  # the DataLoader has what it wants
        _Answers(channel, work, failure).serve()


class _Answers:
    """Batches for tasks, in the order of the tasks."""

    def __init__(self, channel, work, failure):
        self._channel = channel
        self._work = work
        self._failure = failure
        self._arena = Arena()
        self._pass = None
        self._fetcher = None
        self._slot = None

    def serve(self):
        """Until the DataLoader hangs up. Throws: EOFError, ConnectionError."""
        has_ended = False
        while True:
            number, task, returned = pickle.loads(self._channel.receive()[0])
            self._arena.give_back(returned)
            if number != self._pass:
                self._pass, self._fetcher, has_ended = number, None, False
            if has_ended:
                continue  # tasks that were on their way when the stream ended
            kind, batch = self._answer(task)
            if batch is STOPPED:
                return
            has_ended = kind == "end"
            try:
                packed = pack(batch, self._arena, self._slot)
            except Exception as error:  # what a collate_fn made cannot be pickled
                kind = "error"
                packed = pack(self._description(error), self._arena)
            descriptors = [slot.descriptor for slot in packed.slots if slot.descriptor is not None]
            head = (
                self._pass,
                kind,
                [(slot.number, slot.descriptor is not None) for slot in packed.slots],
                packed.places,
            )
            self._channel.send(pickle.dumps((*head, packed.text)), descriptors)
            for slot in packed.slots:
                slot.sent()

    def _answer(self, task):
        self._slot = None
        try:
            if self._failure is not None:
                raise self._failure
            if self._fetcher is None:
                self._fetcher = self._work.fetcher()
            return "batch", self._fetcher.fetch(task, self._allocate, self._channel.is_hung_up)
        except StopIteration as error:
            if not self._work.by_number:
                return "end", None
            return "error", self._description(error)
        except Exception as error:
            return "error", self._description(error)

    def _allocate(self, size):
        self._slot = self._arena.take(size)
        return self._slot.empty

    def _description(self, error):
        """(the exception if it can be sent, its type and text, where it happened, its traceback)"""
        if self._slot is not None:
            self._arena.give_back([self._slot.number])
            self._slot = None
        where = (
            "worker_init_fn"
            if self._failure is not None
            else self._fetcher.position
            if self._fetcher
            else "__iter__"
        )
        name = "".join(traceback.format_exception_only(error)).strip()
        text = "".join(traceback.format_exception(error))
        try:
            # A StopIteration would end the script's loop as if all were well.
            if isinstance(error, StopIteration) or type(pickle.loads(pickle.dumps(error))) is not type(error):
                error = None
        except Exception:
            error = None
        return error, name, where, text


def die_with(parent, forked_by_main_thread):
    """Ends this process when `parent` ends, however it does."""
    if forked_by_main_thread:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    else:
        # To the kernel the parent is the thread that forked, which may end long before its process.
        threading.Thread(target=_end_after, args=(parent, open_pidfd(parent)), daemon=True).start()
    if os.getppid() != parent:
        os._exit(1)


def _end_after(parent, handle):
    watch = select.poll()
    if handle is not None:
        watch.register(handle, select.POLLIN)
        watch.poll()
    while os.getppid() == parent:  # without a pidfd
        watch.poll(100)
    os.kill(os.getpid(), signal.SIGKILL)

"""Passes over a DataLoader: one batch after the other, made here, in a thread, or in worker processes."""

import collections
import threading
from typing import Any

from fleetrun._notes import add_note
from fleetrun.io._worker import STOPPED
from fleetrun.io._workers import End


class Buffer:
    """A thread that keeps up to `capacity` items of an iterator ready, so that making them overlaps with
    using them."""

    def __init__(self, items, capacity):
        self._state = _Shared(capacity)
        self._thread = threading.Thread(
            target=_produce, args=(items, self._state), daemon=True, name="fleetrun-loader"
        )
        self._thread.start()

    def take(self):
        """The next item. Throws: StopIteration, and what the iterator threw, after the items before it."""
        state = self._state
        with state.changed:
            while not state.items and not state.is_over:
                state.changed.wait()
            if state.items:
                state.changed.notify_all()
                return state.items.popleft()
            error, state.error = state.error, None
        if error is not None:
            raise error
        raise StopIteration

    def __len__(self):
        return len(self._state.items)

    def stop(self):
        """The thread ends after the item that it makes now."""
        with self._state.changed:
            self._state.is_stopped = self._state.is_over = True
            self._state.items.clear()
            self._state.changed.notify_all()

    def is_stopped(self):
        """Whether stop() was called."""
        return self._state.is_stopped

    def join(self):
        """Waits for the thread. After stop()."""
        if self._thread is not threading.current_thread():
            self._thread.join()


class _Shared:
    # What a Buffer and its thread both have. The thread has no reference to the Buffer, so that one that is
    # dropped ends.
    def __init__(self, capacity):
        self.capacity = capacity
        self.changed = threading.Condition()
        self.items: Any = collections.deque()
        self.is_over = False
        self.is_stopped = False
        self.error = None


def _produce(items, state):
    error = None
    try:
        for item in items:
            with state.changed:
                state.items.append(item)
                state.changed.notify_all()
                while len(state.items) >= state.capacity and not state.is_stopped:
                    state.changed.wait()
                if state.is_stopped:
                    break
    except BaseException as caught:
        error = caught
    finally:
        close = getattr(items, "close", None)
        if close:
            close()
    with state.changed:
        state.error = error
        state.is_over = True
        state.changed.notify_all()


class Loop:
    """What `for` goes through, under the names that scripts call, too."""

    def __init__(self, items):
        self._items = items

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._items)

    def next(self):
        """__next__(), as Python 2 called it."""
        return self.__next__()


class LocalPass(Loop):
    """Batches made in this process: ahead of time by a thread, which keeps `ahead` of them ready, or with 0
    when asked for."""

    def __init__(self, fetcher, tasks, ahead, finish, progress):
        self._finish = finish
        self._progress = progress
        self._stop = threading.Event()
        batches = _made_here(fetcher, tasks, self._stop)
        self._buffer = Buffer(batches, ahead) if ahead else None
        self._next = batches.__next__ if self._buffer is None else self._buffer.take

    def __next__(self):
        try:
            batch = self._next()
        except StopIteration:
            self._progress.finished()
            raise
        self._progress.given()
        return self._finish(batch)

    def close(self):
        """Ends the thread. A pass that is dropped is closed."""
        self._stop.set()
        if self._buffer:
            self._buffer.stop()

    def __del__(self):
        self.close()


def _made_here(fetcher, tasks, stop):
    for task in tasks:
        try:
            batch = fetcher.fetch(task, is_stopped=stop.is_set)
        except StopIteration:
            if fetcher.by_number:
                raise  # a mistake of the data set, which a generator turns into a RuntimeError
            return
        except Exception as error:
            add_note(error, f"while reading {fetcher.position}")
            raise
        if batch is STOPPED:
            return
        yield batch


class WorkerPass(Loop):
    """Batches made by Workers, in the order of the tasks: the workers take turns, and are asked in turn.

    Each worker has up to `ahead` tasks, so that batches are ready in shared memory while the script computes.
    keeper: the DataLoader that keeps the workers for its next pass, or None; it lives as long as this
    does."""

    def __init__(self, workers, tasks, ahead, finish, keeper, progress):
        self._workers = workers
        self._finish = finish
        self._keeper = keeper
        self._progress = progress
        self._number = workers.begin_pass()
        self._tasks = tasks
        self._awaited: Any = collections.deque()
        self._given = 0
        for turn in range(ahead * len(workers)):
            self._give(turn % len(workers))

    def __next__(self):
        try:
            while self._awaited:
                self._workers.check(self._number)
                place, worker = self._awaited.popleft()
                batch = self._workers.receive(self._number, worker, f"batch {place}")
                if batch is End:
                    self._awaited = collections.deque(one for one in self._awaited if one[1] != worker)
                    continue
                self._give(worker)
                self._progress.given()
                return self._finish(batch)
        except BaseException as error:
            if not isinstance(error, Exception):
                self._workers.close(at_once=True)  # Ctrl-C
            self.close()
            raise
        self.close()
        self._progress.finished()
        raise StopIteration

    def close(self):
        """Ends the workers, unless they are kept for the next pass. A pass that is dropped is closed."""
        self._awaited.clear()
        if self._keeper is None:
            self._workers.close()

    def __del__(self):
        if hasattr(self, "_awaited"):
            self.close()

    def _give(self, worker):
        for task in self._tasks:
            self._workers.send(self._number, worker, task)
            self._awaited.append((self._given, worker))
            self._given += 1
            return

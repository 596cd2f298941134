"""The hosts and processes of a job that may change while it runs, in pure Python.

fleetrun tells each process of a job of several hosts who takes part: `world()` is what it said last,
`on_world_change` is told of every change. A script needs nothing else of this package: PyTorch and plain
Python may import it too. In a process that fleetrun has not started there is no world (None), and nothing is
ever called back.

Worlds change under a running process only in a parameter-server job with elastic hosts (`World.in_place`); in
other jobs the processes are started again, and the new ones find the new world.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["check", "epoch", "on_world_change", "Process", "remove_callback", "World", "world"]


class Process:
    """A trainer or server: `rank`, `endpoint` ("10.0.0.1:6170"), `node` (its host's name), `id` (of the
    fleetrun that started it: a rank whose id has changed is another process than before)."""

    __slots__ = ("rank", "endpoint", "node", "id")

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.rank = int(entry["rank"])
        self.endpoint = entry["endpoint"]
        self.node = entry["node"]
        self.id = entry.get("id", "")

    def __repr__(self) -> str:
        return f"Process(rank={self.rank}, endpoint={self.endpoint!r}, node={self.node!r})"


class World:
    """One world of the job. Values, never changed.

    epoch: counts worlds, from 1. attempt: counts starts of the processes. run: names this run of the job.
    hash: equal worlds have equal ones. in_place: see above. node, node_rank: this host among `nodes`, the
    names of all. trainers,
    servers: lists of Process by rank; in an in-place world a rank of a host that was lost is missing until
    one comes.
    """

    __slots__ = (
        "epoch",
        "attempt",
        "run",
        "hash",
        "in_place",
        "node",
        "node_rank",
        "nodes",
        "trainers",
        "servers",
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.epoch = int(values["epoch"])
        self.attempt = int(values["attempt"])
        self.run = values["run"]
        self.hash = values["hash"]
        self.in_place = bool(values.get("in_place", False))
        self.node = values.get("node", "")
        self.node_rank = int(values["node_rank"])
        self.nodes = list(values["nodes"])
        self.trainers = [Process(entry) for entry in values["trainers"]]
        self.servers = [Process(entry) for entry in values["servers"]]

    def position(self, rank: int) -> tuple[int | None, int]:
        """(position, count) of the trainer with this rank among the trainers that are there: what to split
        work by. A rank that is not there has position None."""
        ranks = sorted(trainer.rank for trainer in self.trainers)
        return (ranks.index(rank) if rank in ranks else None), len(ranks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, World) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return (
            f"World(epoch={self.epoch}, attempt={self.attempt}, nodes={self.nodes}, "
            f"trainers={[trainer.rank for trainer in self.trainers]})"
        )


class _Feed:
    """The pipe from fleetrun: FLEETRUN_WORLD_FD, one JSON object a line, the last one counts."""

    def __init__(self):
        import _thread

        self._lock = _thread.allocate_lock()
        self._calling = _thread.allocate_lock()  # held while a callback of the thread runs
        self._pid = os.getpid()
        self._fd = _descriptor()
        self._partial = b""
        self._world = None
        self._callbacks = []  # called by check()
        self._told = None  # the world they know
        self._followers = []  # called by the thread
        self._following = False

    def world(self):
        # After a fork the pipe is the parent's, who would miss what is read here.
        if self._fd is not None and not self._following and os.getpid() == self._pid:
            self._read()
        return self._world

    def add(self, callback):
        if not self._callbacks:
            self._told = self.world()
        self._callbacks.append(callback)

    def follow(self, callback):
        world = self.world()
        self._followers.append(callback)
        if self._fd is not None and not self._following and os.getpid() == self._pid:
            import atexit
            import threading

            self._following = True
            atexit.register(self._leave)
            threading.Thread(target=self._run, name="fleetrun.elastic", daemon=True).start()
        return world

    def remove(self, callback):
        for callbacks in (self._callbacks, self._followers):
            if callback in callbacks:
                callbacks.remove(callback)

    def check(self):
        if not self._callbacks:
            return False
        world = self.world()
        if world == self._told:
            return False
        self._told = world
        for callback in list(self._callbacks):
            callback(world)
        return True

    def _read(self):
        """Takes what is there; whether the world is another one now."""
        with self._lock:
            data = self._partial
            while self._fd is not None:
                try:
                    block = os.read(self._fd, 1 << 16)
                except BlockingIOError:
                    break
                except OSError:
                    block = b""
                if not block:
                    self._fd = None  # fleetrun is gone; its number may be another file by now
                data += block
            *lines, self._partial = data.split(b"\n")
            before = self._world
            for line in reversed(lines):
                world = _parse(line)
                if world is not None:
                    self._world = world
                    break
            return self._world != before

    def _run(self):
        import select

        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        while self._fd is not None:
            poll.poll()
            if not self._read():
                continue
            for callback in list(self._followers):
                with self._calling:
                    self._call(callback)

    def _call(self, callback):
        try:
            callback(self._world)
        except Exception:  # one that fails must not end the thread that the others need
            import traceback

            traceback.print_exc()

    def _leave(self):
        """Keeps the thread from calling any more: Python aborts when it ends while another thread writes."""
        self._calling.acquire(timeout=1.0)


def _descriptor():
    """The descriptor, or None. The variable may be inherited where the descriptor is not, whose number may be
    another file by now: only a pipe that is open as fleetrun's are is read."""
    text = os.environ.get("FLEETRUN_WORLD_FD")
    if not text:
        return None
    import fcntl
    import stat

    try:
        fd = int(text)
        flags = fcntl.fcntl(fd, fcntl.F_GETFL)
        if (
            not stat.S_ISFIFO(os.fstat(fd).st_mode)
            or not flags & os.O_NONBLOCK
            or flags & os.O_ACCMODE == os.O_WRONLY
        ):
            return None
        os.set_inheritable(fd, False)  # what this process starts must not take its lines
    except (ValueError, OverflowError, OSError):
        return None
    return fd


def _parse(line):
    if not line.strip():
        return None
    import json

    try:
        return World(json.loads(line))
    except (ValueError, KeyError, TypeError):
        return None


_the_feed = None


def _feed():
    global _the_feed
    if _the_feed is None:
        _the_feed = _Feed()
    return _the_feed


def world() -> World | None:
    """The newest World, or None in a process without one. Never blocks; costs one system call."""
    return _feed().world()


def epoch() -> int:
    """The epoch of the newest world; without one that of the process's start; 0 when there is neither."""
    current = world()
    if current is not None:
        return current.epoch
    text = os.environ.get("FLEETRUN_EPOCH", "")
    return int(text) if text.isdigit() else 0


def on_world_change(callback: Callable[[World], object], thread: bool = False) -> Callable[[World], object]:
    """Calls callback(world) after each change of the world; not for the one that is there now. Returns the
    callback, so it can be a decorator.

    By default it is called in the training thread, between two batches: by Executor.run, at the end of
    train_from_dataset, by the calls of fleet, and by check(), which a loop of its own calls. Several changes
    since the last time are one call. With thread=True it is called at once from a thread of this module: it
    must then not touch what the training thread uses; what it raises is printed.
    """
    if thread:
        _feed().follow(callback)
    else:
        _feed().add(callback)
    return callback


def remove_callback(callback: Callable[[World], object]) -> None:
    """Takes back on_world_change."""
    _feed().remove(callback)


def check() -> bool:
    """Calls the callbacks of on_world_change when the world has changed; whether it has."""
    return _the_feed is not None and _the_feed.check()

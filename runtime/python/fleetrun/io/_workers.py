"""The worker processes of a DataLoader, as the script sees them: tasks in, batches out, and what became of
them."""

import collections
import contextlib
import multiprocessing
import os
import pickle
import select
import signal
import threading
from typing import Any

from fleetrun._error import Error
from fleetrun.io import _worker
from fleetrun.io._channel import Channel
from fleetrun.io._kernel import watch_end
from fleetrun.io._slots import Mappings, unpack

# Seconds that a worker has to finish the example it is reading when it is not needed any more; then it is
# killed.
GRACE = 5


class WorkerTraceback(Exception):
    """The traceback of an exception in a worker, as text: the cause of the exception that the script gets."""

    def __str__(self):
        return self.args[0]


class End:
    """Instead of a batch: the worker's stream has no more."""


class Workers:
    """`count` processes that make batches as `work` says. One pass uses them at a time; close() ends them.

    Nothing of them stays: they end with close(), when this is dropped, and when this process ends, however it
    does."""

    def __init__(self, work, count, init, seed, timeout):
        self._owner = os.getpid()
        self._timeout = timeout
        self._passes = 0
        self._members = []
        self._poll = select.poll()
        try:
            for number in range(count):
                self._members.append(_Member(number, count, work, init, seed))
                self._poll.register(self._members[-1].handle, select.POLLIN)
        except BaseException:
            self.close()
            raise

    def __len__(self):
        return len(self._members)

    @property
    def is_open(self):
        """False after close()."""
        return bool(self._members)

    def begin_pass(self):
        """The number of a new pass: what is on its way from the one before will be dropped."""
        self._passes += 1
        return self._passes

    def check(self, number):
        """Throws: Error(config) when this pass cannot go on."""
        if not self._members:
            raise Error("config", "the DataLoader was closed within a pass")
        if number != self._passes:
            raise Error(
                "config",
                "another epoch over the DataLoader began, which uses its persistent workers",
                "finish one pass before the next, or use persistent_workers=False",
            )

    def send(self, number, worker, task):
        """Gives `worker` a task of pass `number`."""
        member = self._members[worker]
        returned = []
        while member.returned:
            returned.append(member.returned.popleft())
        with contextlib.suppress(ConnectionError):  # receive() says what became of it
            member.channel.send(pickle.dumps((number, task, returned)))

    def receive(self, number, worker, what):
        """The next batch of `worker` in pass `number`, or End. `what` names the batch in messages.

        Throws: what the worker's code threw, with a WorkerTraceback as its cause; Error(host) when a worker
        died, Error(timeout)."""
        member = self._members[worker]
        while True:
            self._wait(member, what)
            try:
                data, descriptors = member.channel.receive()
            except (EOFError, ConnectionError):
                raise self._death(member, what) from None
            sent_in, kind, slots, places, text = pickle.loads(data)
            memories = []
            for slot, is_new in slots:
                if is_new:
                    member.mappings.add(slot, descriptors.pop(0))
                memories.append(member.mappings.lend(slot))
            if sent_in != number:
                continue
            batch = unpack(memories, places, text)
            if kind == "batch":
                return batch
            if kind == "end":
                return End
            raise self._failure(member, what, *batch)

    def close(self, at_once=False):
        """Ends the workers: each may finish the example that it reads, or at_once. Batches that are still
        used stay as they are. Does nothing in a forked process."""
        members, self._members = self._members, []
        if os.getpid() != self._owner:
            return
        for member in members:
            member.channel.hang_up()
            if at_once:
                member.process.kill()
        for member in members:
            member.end()

    def __del__(self):
        self.close()

    def _wait(self, member, what):
        """Until `member` has sent something. Throws: Error(host), Error(timeout)."""
        self._poll.register(member.channel, select.POLLIN)
        try:
            ready = dict(self._poll.poll(self._timeout * 1000 if self._timeout else None))
        finally:
            self._poll.unregister(member.channel)
        if member.channel.fileno() in ready:
            return
        if not ready:
            self.close(at_once=True)
            raise Error(
                "timeout",
                f"{member}: no {what} within {self._timeout} s",
                "give the DataLoader a longer timeout=, or 0 for none, or more workers",
            )
        raise self._death(next(one for one in self._members if one.handle in ready), what)

    def _death(self, member, what):
        member.process.join()
        self.close(at_once=True)
        status = member.process.exitcode
        how, hint = f"ended with status {status}", "its standard error says why"
        if status < 0:
            how = f"was killed by {_signal_name(-status)}"
            hint = {
                signal.SIGKILL: "the kernel kills so when memory runs out: take fewer workers or smaller "
                "batches, and see "
                "the kernel's log",
                signal.SIGSEGV: "its native code crashed: num_workers=0 shows where, with python -X "
                "faulthandler",
            }.get(-status, "another process sent it that signal")
        return Error("host", f"{member} {how}, while {what} was awaited", hint)

    @staticmethod
    def _failure(member, what, error, name, where, text):
        cause = WorkerTraceback(f"in {member}, {what}, {where}:\n{text}")
        if error is None:
            error = Error("data", f"{member}, {what}, {where}: {name}")
        error.__cause__ = cause
        return error


class _Member:
    """One worker: its process, the way to it, and the memory that it lends."""

    def __init__(self, number, count, work, init, seed):
        self.name = f"worker {number} of {count}"
        self.returned: Any = collections.deque()
        self.mappings = Mappings(self.returned.append)
        self.channel, other = Channel.pair()
        info = _worker.WorkerInfo(number, count, work.dataset, seed)
        by_main_thread = threading.current_thread() is threading.main_thread()
        self.process = multiprocessing.get_context("fork").Process(
            target=_worker.run,
            args=(other, os.getpid(), by_main_thread, info, work, init),
            daemon=True,
            name=f"fleetrun-{self.name.replace(' ', '-')}",
        )
        try:
            self.process.start()
            self.handle = watch_end(self.process)
        except BaseException:
            self.channel.close()
            raise
        finally:
            other.close()

    def end(self):
        """Waits for the process, and kills it when it takes too long. After hang_up()."""
        self.process.join(GRACE)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        os.close(self.handle)

    def __str__(self):
        return f"{self.name} (process {self.process.pid})"


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

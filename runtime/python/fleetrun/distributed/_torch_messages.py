"""Messages of backend "fleetrun": the works of send and recv, and monitored_barrier, which needs them."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy
import torch
import torch.distributed as torch_distributed

from fleetrun._error import Error
from fleetrun.distributed._generations import the_generations

if TYPE_CHECKING:
    from fleetrun.distributed._mailbox import Mailbox, Receive, Sent

__all__ = ["MessageWork", "Monitor"]


class MessageWork(torch_distributed.Work):
    """A message under way; `then` puts a received one where it belongs, `place` says a rank's place."""

    def __init__(
        self, message: Sent | Receive, then: Callable[[], object], place: Callable[[int], int]
    ) -> None:
        super().__init__()
        self._message, self._then, self._place = message, then, place
        self._age = the_generations.age
        self._lock = threading.Lock()
        self._is_done = False
        self._error: Exception | None = None
        self._ends: list[Callable[[], object]] = []

    def wait(self, timeout: datetime.timedelta = datetime.timedelta(0)) -> bool:
        """Returns when the message has gone, or is here. Throws: Error."""
        with self._lock:
            if not self._is_done:
                try:
                    self._message.wait(timeout.total_seconds() if timeout else None)
                    self._then()
                except Exception as error:
                    the_generations.note(self._age, error)
                    self._error = error
                self._is_done = True
                for call in self._ends:
                    call()
            if self._error is not None:
                raise self._error
        return True

    def at_end(self, call: Callable[[], object]) -> None:
        """Calls `call` when wait() has found the message's end."""
        self._ends.append(call)

    def is_completed(self) -> bool:
        """Whether wait() returns at once; a message that has come is in its tensor then."""
        if not self._message.has_ended():
            return False
        try:
            return self.wait()
        except Exception:
            return True

    def is_success(self) -> bool:
        """Whether the message has gone or come."""
        return self.is_completed() and self._error is None

    def exception(self) -> Exception | None:
        """Why it has not."""
        return self._error

    def source_rank(self) -> int:
        """The place of the rank that sent it, in the group."""
        sender = getattr(self._message, "sender", None)
        if sender is None:
            raise Error("config", "source_rank() of a work that has received nothing", "wait() first")
        return self._place(sender)

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future:
        """A future that ends with it, on a thread."""
        future: torch.futures.Future = torch.futures.Future()

        def serve() -> None:
            try:
                future.set_result(self.wait())
            except Exception as error:
                future.set_exception(error)

        threading.Thread(target=serve, daemon=True).start()
        return future


class Monitor:
    """monitored_barrier: all ranks tell rank 0 that they are there, and it tells them whether all are."""

    def __init__(self) -> None:
        self._rounds = itertools.count(1)

    def wait(self, mailbox: Mailbox, ranks: list[int], own: int, timeout: float, waits_for_all: bool) -> None:
        """`ranks`: of the job, the group's first one leads. Throws: RuntimeError that names who did not come,
        in the words that torch.distributed has for it."""
        tag = -next(self._rounds)  # those of send and recv are not negative
        if own == 0:
            return self._lead(mailbox, ranks, timeout, waits_for_all, tag)
        answer = numpy.zeros(1, numpy.uint8)
        try:
            mailbox.send(answer, ranks[0], tag).wait()
            mailbox.post(answer, ranks[0], tag).wait(timeout)
        except Error as error:
            raise RuntimeError(_without_leader(own)) from error
        if not answer[0]:
            raise RuntimeError(_without_leader(own))

    def _lead(self, mailbox, ranks, timeout, waits_for_all, tag):
        end = time.monotonic() + timeout
        word = numpy.zeros(1, numpy.uint8)
        arriving = [
            (place, mailbox.post(word.copy(), rank, tag)) for place, rank in enumerate(ranks) if place
        ]
        missing: list[int] = []
        milliseconds = int(timeout * 1000)
        for place, receive in arriving:
            left = end - time.monotonic()
            try:
                if left <= 0 and not missing and not receive.has_ended():
                    raise RuntimeError(
                        f"Rank 0 timed out in monitoredBarrier after {milliseconds} ms: rank {place} is not "
                        "there, and the ranks after it were not asked"
                    )
                receive.wait(max(left, 0))
            except Error:
                missing.append(place)
                if not waits_for_all:
                    break
            except RuntimeError:
                self._answer(mailbox, ranks, arriving, tag, word)
                raise
        word[0] = not missing
        self._answer(mailbox, ranks, arriving, tag, word)
        if missing:
            who = f"Rank{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))}"
            raise RuntimeError(f"{who} failed to pass monitoredBarrier in {milliseconds} ms")

    def _answer(self, mailbox, ranks, arriving, tag, word):
        answers = []
        for place, receive in arriving:
            if receive.has_ended():
                answers.append(mailbox.send(word, ranks[place], tag))
            else:
                mailbox.withdraw(receive)
        for answer in answers:  # who leaves the group after the barrier must not take one along
            with contextlib.suppress(Error):
                answer.wait()


def _without_leader(own):
    return (
        f"Rank {own} successfully reached monitoredBarrier, but received errors while waiting for send/recv "
        "from rank 0: a rank that rank 0 names did not come in time"
    )

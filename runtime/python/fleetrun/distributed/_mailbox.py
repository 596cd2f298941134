"""Messages with tags, and from any rank: what torch.distributed asks of send and recv, over channels.

A message is a front of fixed size, with its tag, its size and its first bytes, and the rest of its bytes. A
thread for each source reads fronts, as long as a receive that was posted could take one, and looks for the
first such receive. A message that none has asked for is kept only when a later one is: till then it
stays with its sender.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import numpy

from fleetrun import _native
from fleetrun._error import Error
from fleetrun.distributed._arrays import view

__all__ = ["Mailbox", "Receive", "Sent"]

_FRONT = 4096
_HEAD = 16  # tag, bytes
_KIND = _native.CallKind
_PATIENCE = 5  # seconds for a reader that was told to end
# Seconds: a source may have nothing to say to this rank for long; the receives have their own limits.
_ALWAYS = 20 * 86400


class Sent:
    """A message that was given to its channel."""

    def __init__(self, messages: Iterable[Any]) -> None:
        self._messages = list(messages)

    def has_ended(self) -> bool:
        """Whether wait() returns at once."""
        return all(message.has_ended() for message in self._messages)

    def wait(self, timeout: float | None = None) -> None:
        """Returns when the sender may change what it sent. Throws: the call's Error."""
        for message in self._messages:
            message.wait()


class Receive:
    """A receive that was posted: `source` a rank of the job, None: any."""

    def __init__(self, mailbox: Mailbox, data: numpy.ndarray, source: int | None, tag: int) -> None:
        self.data, self.source, self.tag = data, source, tag
        self.sender: int | None = None
        self._mailbox = mailbox
        self._error: BaseException | None = None
        self._end = threading.Event()

    def wants(self, source: int, tag: int | None = None) -> bool:
        """Whether it takes a message of this source, and tag."""
        return self.source in (None, source) and tag in (None, self.tag)

    def end(self, sender: int | None, error: BaseException | None = None) -> None:
        """The message is here, or will not come."""
        self.sender, self._error = sender, error
        self._end.set()

    def has_ended(self) -> bool:
        """Whether wait() returns at once."""
        return self._end.is_set()

    def wait(self, timeout: float | None = None) -> None:
        """Returns when the message is here; timeout: seconds, by default the group's. Throws: Error."""
        within = self._mailbox.within if timeout is None else timeout
        if not self._end.wait(within) and self._mailbox.withdraw(self):
            who = "no rank has" if self.source is None else f"rank {self.source} has not"
            raise Error(
                "timeout", f"{who} sent {len(self.data)} bytes with tag {self.tag}, timeout of {within:g} s"
            )
        self._end.wait()
        if self._error is not None:
            raise self._error


class Mailbox:
    """The messages of a Group's ranks to this one, `own`, and from it. Threads: any."""

    def __init__(self, group: Any, own: int) -> None:
        self.within = group.call_within
        self._group, self._own = group, own
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        self._posted: list[Receive] = []
        self._kept: list[tuple[int, int, numpy.ndarray]] = []
        self._readers: dict[int, threading.Thread] = {}
        self._is_closed = False

    def send(self, data: numpy.ndarray, target: int, tag: int) -> Sent:
        """Gives bytes to a rank of the job."""
        front = numpy.empty(_FRONT, numpy.uint8)
        front[:_HEAD].view(numpy.int64)[:] = tag, len(data)
        here = min(len(data), _FRONT - _HEAD)
        front[_HEAD : _HEAD + here] = data[:here]
        channel = self._group.channel(self._own, target)
        parts = [front, data[here:]] if len(data) > here else [front]
        with self._sending:
            return Sent([channel.start(_native.Call(_KIND.send, view(part), None, len(part), root=1))
                         for part in parts])  # fmt: skip

    def post(self, data: numpy.ndarray, source: int | None, tag: int) -> Receive:
        """Takes the next message of a rank of the job, None: of any, with this tag."""
        receive = Receive(self, data, source, tag)
        sources = [rank for rank in self._group.ranks if rank != self._own] if source is None else [source]
        with self._changed:
            for kept in self._kept:
                if receive.wants(*kept[:2]):
                    self._kept.remove(kept)
                    _hand_over(receive, *kept)
                    return receive
            self._posted.append(receive)
            for rank in sources:
                if rank not in self._readers:
                    self._readers[rank] = threading.Thread(target=self._serve, args=[rank], daemon=True)
                    self._readers[rank].start()
            self._changed.notify_all()
        return receive

    def withdraw(self, receive: Receive) -> bool:
        """Whether nothing has come for it, and nothing will."""
        with self._changed:
            if receive not in self._posted:
                return False
            self._posted.remove(receive)
            return True

    def close(self) -> None:
        """No more messages: receives that wait fail."""
        with self._changed:
            self._is_closed = True
            readers = dict(self._readers)
            self._changed.notify_all()
        for source, reader in readers.items():
            self._incoming(source).end(f"{self._group.name} was let go")  # what it still has is for nobody
            reader.join(_PATIENCE)

    def _serve(self, source):
        try:
            while self._is_wanted(source):
                self._take(source)
        except Exception as error:
            with self._changed:
                self._readers.pop(source, None)
                failed = [each for each in self._posted if each.wants(source)]
                self._posted = [each for each in self._posted if each not in failed]
                for receive in failed:
                    receive.end(None, error)

    def _is_wanted(self, source):
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or any(e.wants(source) for e in self._posted))
            if self._is_closed:
                raise Error("network", f"{self._group.name} was let go")
            return True

    def _take(self, source):
        front = numpy.empty(_FRONT, numpy.uint8)
        self._receive(source, front)
        tag, size = (int(number) for number in front[:_HEAD].view(numpy.int64))
        here = min(size, _FRONT - _HEAD)
        receive = self._match(source, tag)
        # A receive of another size fails, and the ones after it do not.
        data = receive.data if receive and len(receive.data) == size else numpy.empty(size, numpy.uint8)
        data[:here] = front[_HEAD : _HEAD + here]
        if size > here:
            try:
                self._receive(source, data[here:])
            except Exception as error:
                if receive is not None:
                    receive.end(None, error)
                raise
        with self._changed:
            receive = receive or self._first(source, tag)
            if receive is None:
                self._kept.append((source, tag, data))
            else:
                _hand_over(receive, source, tag, data)

    def _receive(self, source, data):
        self._incoming(source).run(_native.Call(_KIND.receive, None, view(data), len(data), root=0))

    def _incoming(self, source):
        return self._group.channel(source, self._own, _ALWAYS)

    def _match(self, source, tag):
        """The receive that a message is for; None where one is posted that a later message may be for."""
        with self._changed:
            while True:
                receive = self._first(source, tag)
                if receive is not None or any(each.wants(source) for each in self._posted):
                    return receive
                if self._is_closed:
                    raise Error("network", f"{self._group.name} was let go")
                self._changed.wait()

    def _first(self, source, tag):
        """The first posted receive that takes it, which is posted no more."""
        found = next((each for each in self._posted if each.wants(source, tag)), None)
        if found is not None:
            self._posted.remove(found)
        return found


def _hand_over(receive, source, tag, data):
    if len(receive.data) != len(data):
        what = f"rank {source} sends {len(data)} bytes with tag {tag}, and {len(receive.data)} are received"
        return receive.end(None, Error("config", what, "send and receive tensors of one size"))
    if receive.data is not data:
        receive.data[:] = data
    receive.end(source)

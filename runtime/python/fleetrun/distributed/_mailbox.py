"""Messages with tags, and from any rank: what torch.distributed asks of send and recv, over channels.

How a message travels, and which receive it is for, says collective/base/inbox.h. Here each source gets the
thread that reads from its channel.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from fleetrun import _native
from fleetrun._error import Error
from fleetrun.distributed._arrays import view

__all__ = ["Mailbox", "Receive", "Sent"]

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
    """A receive that was posted, into a contiguous array: `source` a rank of the job, None: any."""

    def __init__(self, mailbox: Mailbox, data: Any, source: int | None, tag: int) -> None:
        self._mailbox, self._source, self._tag = mailbox, source, tag
        values = view(data)
        self._bytes = values.bytes
        self.posted = mailbox.inbox.post(values, source, tag)

    @property
    def sender(self) -> int | None:
        """The rank of the job whose message it is; None before."""
        return self.posted.sender

    def has_ended(self) -> bool:
        """Whether wait() returns at once."""
        return self.posted.has_ended()

    def wait(self, timeout: float | None = None) -> None:
        """Returns when the message is here; timeout: seconds, by default the group's. Throws: Error."""
        within = self._mailbox.within if timeout is None else timeout
        if self.posted.wait(within):
            return
        if self._mailbox.withdraw(self):
            who = "no rank has" if self._source is None else f"rank {self._source} has not"
            raise Error(
                "timeout", f"{who} sent {self._bytes} bytes with tag {self._tag}, timeout of {within:g} s"
            )
        self.posted.wait(_ALWAYS)


class Mailbox:
    """The messages of a Group's ranks to this one, `own`, and from it. Threads: any."""

    def __init__(self, group: Any, own: int) -> None:
        self.within = group.call_within
        self.inbox = _native.Inbox(group.name)
        self._group, self._own = group, own
        self._sending = threading.Lock()
        self._readers: dict[int, threading.Thread] = {}

    def send(self, data: Any, target: int, tag: int) -> Sent:
        """Gives a contiguous array's bytes to a rank of the job."""
        channel, calls = self._group.channel(self._own, target), _native.message_calls(view(data), tag)
        with self._sending:
            return Sent([channel.start(call) for call in calls])

    def post(self, data: Any, source: int | None, tag: int) -> Receive:
        """Takes the next message of a rank of the job, None: of any, with this tag."""
        receive = Receive(self, data, source, tag)
        sources = [rank for rank in self._group.ranks if rank != self._own] if source is None else [source]
        for rank in sources:
            if self.inbox.claim(rank):
                self._readers[rank] = threading.Thread(target=self._serve, args=[rank], daemon=True)
                self._readers[rank].start()
        return receive

    def withdraw(self, receive: Receive) -> bool:
        """Whether nothing has come for it, and nothing will."""
        return self.inbox.withdraw(receive.posted)

    def close(self) -> None:
        """No more messages: receives that wait fail."""
        self.inbox.close()
        for source, reader in list(self._readers.items()):
            self._incoming(source).end(f"{self._group.name} was let go")  # what it still has is for nobody
            reader.join(_PATIENCE)

    def _serve(self, source):
        try:
            communicator = self._incoming(source).connected()
        except Exception as error:
            return self.inbox.fail(source, str(error))
        self.inbox.serve(source, communicator)

    def _incoming(self, source):
        return self._group.channel(source, self._own, _ALWAYS)

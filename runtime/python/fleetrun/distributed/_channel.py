"""Messages from one rank to another, beside all other calls and other ranks' messages.

A channel has a communicator of its two ranks, made with its first message on a thread of its own, so that
nobody waits for the other rank before it has asked to. Messages of a channel keep their order; those of
different channels do not wait for each other, as sends and receives that both ranks post first ask for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from fleetrun._error import Error

if TYPE_CHECKING:
    from fleetrun import _native

__all__ = ["Channel", "Message"]


class Message:
    """A send or a receive that was given to a channel."""

    def __init__(self, call: _native.Call) -> None:
        self.call = call
        self._started: _native.StartedCall | None = None
        self._error: BaseException | None = None
        self._is_under_way = threading.Event()

    def begin(self, started: _native.StartedCall | None, error: BaseException | None = None) -> None:
        """The channel has made the call, or cannot."""
        self._started, self._error = started, error
        self._is_under_way.set()

    def has_ended(self) -> bool:
        """Whether wait() returns at once."""
        return self._is_under_way.is_set() and (self._started is None or self._started.has_ended())

    def wait(self) -> None:
        """Returns when this rank's part is done. Throws: the call's Error."""
        self._is_under_way.wait()
        if self._error is not None:
            raise self._error
        assert self._started is not None
        self._started.wait()


class Channel:
    """make: the communicator of the sender, its rank 0, and the receiver. Threads: any."""

    def __init__(self, make: Callable[[], _native.Communicator]) -> None:
        self.communicator: _native.Communicator | None = None
        self._make = make
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._waiting: list[Message] = []

    def start(self, call: _native.Call) -> Message:
        """Makes the call after those before it."""
        message = Message(call)
        with self._lock:
            if self.communicator is not None or self._error is not None:
                self._begin(message)
            else:
                self._waiting.append(message)
                if len(self._waiting) == 1:
                    threading.Thread(target=self._connect, daemon=True).start()
        return message

    def connected(self) -> _native.Communicator:
        """The communicator, made in this thread; nobody else uses the channel. Throws: Error."""
        if self.communicator is None and self._error is None:
            self._connect()
        if self._error is not None:
            raise self._error
        assert self.communicator is not None
        return self.communicator

    def end(self, why: str) -> None:
        """The calls under way fail, and those to come."""
        with self._lock:
            self._error = Error("network", why)
            for message in self._waiting:
                message.begin(None, self._error)
            self._waiting.clear()
            if self.communicator is not None:
                self.communicator.abort(why)

    def _begin(self, message):
        if self._error is not None:
            return message.begin(None, self._error)
        assert self.communicator is not None
        try:
            return message.begin(self.communicator.start(message.call))
        except Exception as error:
            return message.begin(None, error)

    def _connect(self):
        communicator, error = None, None
        try:
            communicator = self._make()
        except Exception as raised:
            error = raised
        with self._lock:
            if self._error is not None:  # ended meanwhile
                return
            self.communicator, self._error = communicator, error
            for message in self._waiting:
                self._begin(message)
            self._waiting.clear()

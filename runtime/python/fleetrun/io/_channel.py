"""Messages between a DataLoader and one worker: bytes, and descriptors with them, over a pair of sockets."""

import contextlib
import os
import select
import socket
import struct

_HEAD = struct.Struct("<Q")
_MOST = 2  # descriptors with one message


class Channel:
    """One end. Not for several threads at once."""

    def __init__(self, end):
        self._socket = end
        self._hang_up = select.poll()
        self._hang_up.register(end, select.POLLRDHUP)

    @classmethod
    def pair(cls):
        """Both ends."""
        return [cls(end) for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)]

    def fileno(self):
        """For poll()."""
        return self._socket.fileno()

    def send(self, data, descriptors=()):
        """Throws: ConnectionError when the other end is gone."""
        message = _HEAD.pack(len(data)) + data
        sent = 0
        if descriptors:
            sent = socket.send_fds(self._socket, [message], descriptors, socket.MSG_NOSIGNAL)
        self._socket.sendall(memoryview(message)[sent:], socket.MSG_NOSIGNAL)

    def receive(self):
        """(bytes, descriptors, which are the caller's now). Throws: EOFError, ConnectionError when the other
        end is gone."""
        head, descriptors, _, _ = socket.recv_fds(self._socket, _HEAD.size, _MOST, socket.MSG_CMSG_CLOEXEC)
        try:
            while len(head) < _HEAD.size:
                head += self._some(_HEAD.size - len(head))
            size = _HEAD.unpack(head)[0]
            data = bytearray()
            while len(data) < size:
                data += self._some(size - len(data))
        except BaseException:
            for descriptor in descriptors:
                os.close(descriptor)
            raise
        return data, descriptors

    def is_hung_up(self):
        """Whether the other end is gone, without waiting."""
        return bool(self._hang_up.poll(0))

    def hang_up(self):
        """Ends the conversation for both, even where a forked process has a copy of this end."""
        with contextlib.suppress(OSError):  # the other end is gone
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def close(self):
        """Closes this end in this process only."""
        self._socket.close()

    def _some(self, size):
        data = self._socket.recv(min(size, 1 << 20))
        if not data:
            raise EOFError
        return data

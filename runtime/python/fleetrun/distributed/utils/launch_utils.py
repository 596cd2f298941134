"""paddle.distributed.utils.launch_utils: ports for those who start processes themselves."""

from __future__ import annotations

import contextlib
import socket

from fleetrun import _lazy

__all__ = ["find_free_ports"]


def find_free_ports(num: int) -> set[int]:
    """`num` ports of this host that nobody listens at now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(num)]
        for one in sockets:
            one.bind(("", 0))
        return {one.getsockname()[1] for one in sockets}


__getattr__, __dir__ = _lazy.attach(__name__)

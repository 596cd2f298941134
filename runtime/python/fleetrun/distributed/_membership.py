"""This process's line to fleetrun in a job with --on_failure=replace: FLEETRUN_MEMBER_FD, one JSON object a
line (launcher/run/member_link.h). Without such a job there is no line, and nothing here does anything.

A generation is the ranks from one failure to the next. A process that stands by (FLEETRUN_STANDBY) has no
rank until it takes a place in one; every other leaves its generation when a rank of it is lost, and waits
here for the next.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from fleetrun._error import Error

__all__ = ["Member", "the_member", "wait_for_place"]


class Member:
    """The line. generation: that of which this process is; newcomers: the ranks of it that had no state of
    the training when it began."""

    def __init__(self, fd: int) -> None:
        import socket

        self.generation = 0
        self.newcomers: list[int] = []
        self.is_new = False
        self.on_lost: Callable[[str], None] | None = None
        self._socket = socket.socket(fileno=fd)
        self._store: str | None = None
        self._newest: dict[str, Any] = {"generation": 0}
        self._is_over = False
        self._lost_in = -1  # the newest generation of which a rank is known to be lost
        self._changed = threading.Condition()
        threading.Thread(target=self._listen, name="fleetrun.member", daemon=True).start()

    @property
    def has_lost(self) -> bool:
        """Whether a rank of the generation is lost."""
        return self._lost_in == self.generation

    def take_place(self) -> None:
        """Of a process that stands by: waits until it has a rank, which is then in its environment."""
        _warm_up()
        with _ending_at_once():
            self._say({"waits": True})
            self._await_next()
        os.environ.update(self._newest["environment"])
        os.environ.pop("FLEETRUN_STANDBY", None)
        self.is_new = True

    def leave(self, step: int) -> None:
        """Out of the generation before this step; returns when there is another one."""
        self._say({"leaves": self.generation, "step": step})
        self._await_next()

    def trains(self) -> None:
        """This process has the state of the training."""
        self.is_new = False
        self._say({"trains": True})

    def environment(self) -> dict[str, str] | None:
        """Where the ranks of the generation meet; None: where the environment says."""
        if self._store is None:
            return None
        environ = dict(os.environ)
        endpoints = [self._store, *environ["PADDLE_TRAINER_ENDPOINTS"].split(",")[1:]]
        rank = int(environ["PADDLE_TRAINER_ID"])
        environ.update(
            PADDLE_TRAINER_ENDPOINTS=",".join(endpoints),
            PADDLE_CURRENT_ENDPOINT=endpoints[rank],
            FLEETRUN_LISTEN=self._store,
            FLEETRUN_ATTEMPT=f"generation {self.generation} at {self._store}",
        )
        return environ

    def _say(self, message):
        import json

        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def _await_next(self):
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._newest["generation"] > self.generation)
            if self._is_over:
                raise Error(
                    "network", "fleetrun is gone, which says who takes the place of a rank that is lost"
                )
            self.generation = self._newest["generation"]
            self.newcomers = self._newest["newcomers"]
            self._store = self._newest["store"]

    def _listen(self):
        import json

        with self._socket.makefile("rb") as lines:
            for line in lines:
                message = json.loads(line)
                if "lost" in message:
                    self._lost_in = message["generation"]
                    if self.has_lost and self.on_lost is not None:
                        self.on_lost(f"rank {message['lost']} of the job died")
                    continue
                with self._changed:
                    self._newest = message
                    self._changed.notify_all()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()


_member: Member | None = None
_looked = False


def the_member() -> Member | None:
    """The line, None where there is none. Forked processes have none."""
    global _member, _looked
    if not _looked:
        _looked = True
        fd = _descriptor()
        if fd is not None:
            _member = Member(fd)
            os.register_at_fork(after_in_child=_forget)
    return _member


def wait_for_place() -> None:
    """To be called before the environment is asked for a rank: a process that stands by has none yet."""
    if os.environ.get("FLEETRUN_STANDBY"):
        member = the_member()
        if member is not None:
            member.take_place()


@contextlib.contextmanager
def _ending_at_once() -> Iterator[None]:
    """A script's own answer to SIGTERM, as that it saves after its step, is not for who has no step."""
    import signal

    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL) if is_main else None
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _warm_up():
    """Much is loaded when it is first used: here, while nobody waits for it."""
    importlib.import_module("fleetrun.distributed.parallel.recoverable")
    importlib.import_module("fleetrun.distributed.fleet")
    torch = sys.modules.get("torch")
    if torch is None:
        return
    parameter = torch.nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([parameter], lr=0.0)
    parameter.square().sum().backward()
    optimizer.step()


def _forget():
    global _member
    _member = None


def _descriptor():
    """The variable may be inherited where the descriptor is not, whose number may be another file by now."""
    import stat

    try:
        fd = int(os.environ.get("FLEETRUN_MEMBER_FD", ""))
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return None
        os.set_inheritable(fd, False)
    except (ValueError, OSError):
        return None
    return fd

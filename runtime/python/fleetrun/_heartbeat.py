"""Signs of life for `fleetrun --hang_timeout`, and values for `fleetrun --metrics`, in pure Python.

Nothing happens in a process that has no FLEETRUN_HEARTBEAT_FD, and nothing here can block or fail: a beat
that the descriptor does not take is dropped.
"""

import contextlib
import fcntl
import os
import stat
import time

_LONGEST_LINE = 1024  # what fleetrun reads
_INTERVAL = 0.05  # seconds; what is said in between is left out


def _descriptor():
    """The descriptor, or None. A process that was started by the one it is for inherits the variable but not
    always the descriptor, whose number may be another file by now: only a pipe that is open as fleetrun's are
    is written to."""
    text = os.environ.get("FLEETRUN_HEARTBEAT_FD", "")
    try:
        fd = int(text)
        flags = fcntl.fcntl(fd, fcntl.F_GETFL)
        is_pipe = stat.S_ISFIFO(os.fstat(fd).st_mode)
    except (ValueError, OverflowError, OSError):
        return None
    return fd if is_pipe and flags & os.O_NONBLOCK and flags & os.O_ACCMODE != os.O_RDONLY else None


def _with_values(line, values):
    """Of lines that are short enough."""
    lines = [line]
    for name, value in values.items():
        word = f" {name}={float(value):.9g}"
        if len((lines[-1] + word).encode()) > _LONGEST_LINE:
            lines.append("beat")
        lines[-1] += word
    return "\n".join(lines)


class _Heart:
    def __init__(self):
        self._fd = _descriptor()
        self._due = self._values_due = 0.0
        self._values = {}  # that are not said yet

    def beat(self, step=None, seconds=None, **values):
        """Tells fleetrun that this process gets on: call it once per step.

        step: the number of the step, which also tells the restart policy that there is progress. seconds: how
        long the step's own work took, without waiting for other processes; by it a slow process is found
        among ones that wait for each other. values: numbers such as loss=0.4, which `fleetrun --metrics`
        serves under their names. Calls that follow each other closely are left out, so it costs next to
        nothing; the values of those are said with the next call.
        """
        if self._fd is None:
            return
        now = time.monotonic()
        for name, value in values.items():
            self._values["_".join(name.replace("=", " ").split())] = value
        tells = self._values and now >= self._values_due
        if now < self._due and not tells:
            return
        self._due = now + _INTERVAL
        line = "beat" if step is None else f"step {int(step)}"
        if step is not None and seconds is not None:
            line += f" {float(seconds):.6g}"
        if tells:
            line = _with_values(line, self._values)
            self._values_due = now + _INTERVAL
            self._values.clear()
        with contextlib.suppress(OSError):  # nobody reads, and the channel is full
            os.write(self._fd, line.encode() + b"\n")


heartbeat = _Heart().beat

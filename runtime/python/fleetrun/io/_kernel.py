"""Calls of Linux that a Python has only where it was built with new headers: conda's and others' have neither
os.memfd_create() nor os.pidfd_open()."""

import ctypes
import os

_PIDFD_OPEN = 434  # on every machine: calls from 424 on have one number
_CLOSE_ON_EXEC = 1

_libc = ctypes.CDLL(None, use_errno=True)


def memory_file(name):
    """The descriptor of an empty file in memory that has no place in any folder. Raises: OSError."""
    descriptor = _libc.memfd_create(name.encode(), _CLOSE_ON_EXEC)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "memfd_create")
    return descriptor


def open_pidfd(pid):
    """A descriptor that can be read from once process `pid` has ended; None: Linux before 5.3, or a container
    that forbids it."""
    descriptor = _libc.syscall(_PIDFD_OPEN, ctypes.c_int(pid), ctypes.c_uint(0))
    return descriptor if descriptor >= 0 else None


def watch_end(process):
    """The same of a multiprocessing.Process that was forked and has not been waited for; always there."""
    descriptor = open_pidfd(process.pid)
    return descriptor if descriptor is not None else os.dup(process.sentinel)

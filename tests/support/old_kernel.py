"""The kernel of an older Linux, as far as the calls go that it does not have: for `preexec_fn`."""

import ctypes
import errno
import struct

# Numbers of calls, the same on every machine from 424 on.
PIDFD_OPEN, CLONE3, CLOSE_RANGE = 434, 435, 436
WAITID = 247  # of x86-64
AFTER_5_0 = range(424, 470)  # what Linux 4.18, of RHEL 8, does not have

_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_LOAD_NUMBER, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


def forbid(calls, error=errno.ENOSYS):
    """From now on these calls of this process, and of what it starts, fail with `error`. Raises: OSError."""
    steps = [(_LOAD_NUMBER, 0, 0, 0)]
    for call in calls:
        steps += [(_IF_EQUAL, 0, 1, call), (_RETURN, 0, 0, _ERRNO | error)]
    steps.append((_RETURN, 0, 0, _ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if (libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0
            or libc.prctl(_SECCOMP, _FILTER, ctypes.c_char_p(program)) != 0):
        raise OSError(ctypes.get_errno(), "no filter for system calls is possible here")


def without(calls, error=errno.ENOSYS):
    """For preexec_fn=."""
    return lambda: forbid(calls, error)

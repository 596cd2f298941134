"""The end of a process that was interrupted in a call which cannot be cancelled."""

import atexit
import os
import sys


def leave_at_exit() -> None:
    """Ends the process with 130, as after Ctrl-C, before anything waits for the abandoned call."""

    def leave():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130)

    # Functions registered last run first.
    atexit.register(leave)

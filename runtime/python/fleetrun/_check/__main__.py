"""What `fleetrun check` runs: as a file, so that no module of the current folder stands in the way."""

import gc
import os
import signal
import sys
import traceback

_HERE = os.path.dirname(os.path.realpath(__file__))
# Not where a script's modules are looked for: this folder, and with -m the current one.
if sys.path and os.path.realpath(sys.path[0] or os.curdir) in (_HERE, os.path.realpath(os.curdir)):
    del sys.path[0]
sys.path.append(os.path.dirname(os.path.dirname(_HERE)))
signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has left ends it, as any command
gc.disable()  # a check ends before it has much to free
sys.setrecursionlimit(10_000)  # calls within calls of a script are that here, too

from fleetrun._check.command import main  # noqa: E402

try:
    status = main(sys.argv[1:])
except Exception:
    traceback.print_exc()
    status = 125  # an error of the check's own is no finding
sys.exit(status)

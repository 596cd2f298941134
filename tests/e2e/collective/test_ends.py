"""How a process ends whose threads are still in native calls: with its own status."""

import subprocess
import sys

from torch_python import clean_environment

THREADS = """
import threading
import numpy
from fleetrun import _native
from fleetrun.distributed._arrays import view

def wait_again_and_again(begun):
    receive = _native.Inbox("a").post(view(numpy.zeros(1, numpy.uint8)), 0, 0)
    while not receive.wait(0.0002):
        begun.set()

for _ in range(8):
    begun = threading.Event()
    threading.Thread(target=wait_again_and_again, args=[begun], daemon=True).start()
    begun.wait(60)
raise SystemExit(3)
"""


def test_threads_in_native_calls_do_not_abort_a_process_that_ends():
    """CPython before 3.14 unwinds them when they come back."""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", THREADS], env=clean_environment(), text=True,
                              capture_output=True, timeout=120)
        assert (done.returncode, done.stderr) == (3, "")

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


FORKED = """
import gc
import os
import sys
import numpy
import fleetrun.distributed as dist
values = numpy.ones(4, dtype=numpy.float32)
held = dist.new_group([0, 1])
dist.all_reduce(values, group=held)
child = os.fork()
if child == 0:
    del held
    gc.collect()
    sys.exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
dist.all_reduce(values, group=held)
dist.all_reduce(values, group=dist.new_group([0, 1]))  # whose ranks meet in the store of rank 0
assert values[0] == 8
print("done")
"""


def test_a_forked_child_that_ends_is_not_the_rank_that_ends(job):
    job(FORKED, 2).succeeded()


DROPPED = """
import os
import time
import torch
import fleetrun.distributed.fleet as fleet

def held():
    return len(os.listdir("/proc/self/fd")) + len(os.listdir("/proc/self/task"))

fleet.init(is_collective=True)
counts = []
for _ in range(12):
    model = fleet.distributed_model(torch.nn.Linear(4, 3))
    model(torch.ones(2, 4)).sum().backward()
    del model
    counts.append(held())
until = time.monotonic() + 60  # the kernel lists a thread for a moment after it was joined
while held() > counts[1] and time.monotonic() < until:
    time.sleep(0.01)
assert held() <= counts[1], (held(), counts)
print("done")
"""


def test_models_that_are_dropped_leave_no_threads_and_descriptors(torch_job):
    torch_job(DROPPED, 2).succeeded()

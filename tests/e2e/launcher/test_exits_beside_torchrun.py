"""How jobs end, in a table: `fleetrun torchrun` ends them as torchrun does, `fleetrun` with the process's own
status. The table holds for PyTorch's torchrun too, which runs beside them where FLEETRUN_PEERS_TORCH has one.
"""

import os
import pathlib
import re
import signal
import subprocess

import pytest

from fleetrun_job import clean_environment, find_fleetrun, wait_until

# Rank 0 waits for a signal, and rank 1 does what the case says when rank 0 is ready.
RANKS = """
import os, pathlib, resource, signal, sys, threading, time

rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])

def note(text):
    with open(f"rank{rank}", "a") as file:
        file.write(text + " ")

def on_signal(number, _):
    note(signal.Signals(number).name)
    os._exit(128 + number)

def wait(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)

def is_gone(pid):
    return not os.path.exists(f"/proc/{pid}")

def die(number):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)

def fail_in_a_thread():
    threading.Thread(target=lambda: 1 / 0).start()

def use_memory():
    resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))
    bytearray(1 << 30)

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, on_signal)
ready = pathlib.Path(f"ready{attempt}")
if rank == 0:
    note("begins")
    half = ready.with_suffix(".half")
    half.write_text(str(os.getpid()))
    half.rename(ready)
else:
    wait(ready.exists)
    other = int(ready.read_text())
    note("begins")
"""
LEAVES = "if rank == 0: sys.exit(0)\nwait(lambda: is_gone(other))\n"

# What rank 1 does: its exit code as Python has it. Rank 0 gets SIGTERM then.
DEATHS = {
    "sys.exit(3)": 3,
    "sys.exit('a text')": 1,
    "sys.exit(-1)": 255,
    "sys.exit(300)": 44,
    "os._exit(7)": 7,
    "raise ValueError": 1,
    "exec('a b')": 1,
    "use_memory()": 1,
    "os.abort()": -6,
    "os.kill(os.getpid(), signal.SIGKILL)": -9,
    "die(signal.SIGSEGV)": -11,
    "die(signal.SIGTERM)": -15,
    "die(signal.SIGINT)": -2,
    "die(signal.SIGPIPE)": -13,
}
# The whole job: flags of torchrun, both ranks' last lines, the exit code of rank 1, what each rank saw.
JOBS = {
    "who leaves early with 0 ends nothing": ("", LEAVES + "note('ends')", 0, ["begins", "begins ends"]),
    "who fails later counts": ("", LEAVES + "sys.exit(3)", 3, ["begins", "begins"]),
    "an exception in a thread is no failure": (
        "", LEAVES + "fail_in_a_thread()", 0, ["begins", "begins"]),
    "a restart starts all again": (
        "--max-restarts=2",
        "if attempt == 1: sys.exit(0)\nif rank == 1: sys.exit(9)\nsignal.pause()", 0,
        ["begins SIGTERM begins", "begins begins"]),
    "restarts come to an end": (
        "--max-restarts=1", "if rank == 1: sys.exit(9)\nsignal.pause()", 9,
        ["begins SIGTERM begins SIGTERM", "begins begins"]),
}
# A signal to the launcher: what ranks of `fleetrun` get, and its status. Those of torchrun get the signal.
SIGNALS = {"SIGINT": ("SIGTERM", 130), "SIGTERM": ("SIGTERM", 143), "SIGHUP": ("SIGTERM", 129),
           "SIGQUIT": ("SIGQUIT", 131)}


def command(way):
    if way != "torchrun":
        return [find_fleetrun(), *way.split()[1:]]
    python = pathlib.Path(os.environ.get("FLEETRUN_PEERS_TORCH", "/nowhere"), "bin", "python")
    if not python.exists():
        pytest.skip("FLEETRUN_PEERS_TORCH has no torchrun")
    return [str(python), "-m", "torch.distributed.run"]


@pytest.fixture(params=["fleetrun", "fleetrun torchrun", "torchrun"])
def way(request):
    return request.param


@pytest.fixture
def start(work, python, way):
    def start(code, *flags):
        work.script("ranks.py", RANKS + code)
        return subprocess.Popen([*command(way), "--nproc-per-node=2", *flags, "ranks.py"], cwd=work.directory,
                                env=clean_environment(PYTHON_EXEC=python, TMPDIR=str(work.directory)),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)
    return start


def seen(work):
    return [(work.directory / f"rank{rank}").read_text().strip() for rank in (0, 1)]


def check_end(job, way, code):
    """The job's status, and the root of its failure, where rank 1 ended with this code."""
    _, said = job.communicate(timeout=90)
    if way == "fleetrun":
        assert job.returncode == (code if code >= 0 else 128 - code), said
        assert code == 0 or "first failure: trainer 1 " in said
        return
    assert job.returncode == (code != 0), said
    root = re.search(r"Root Cause.*?rank +: (\d+).*?exitcode +: (-?\d+)", said, re.DOTALL)
    assert (root and root.groups()) == (("1", str(code)) if code else None), said


@pytest.mark.parametrize("death", DEATHS)
def test_a_rank_that_dies_ends_the_job_with_its_code(work, way, start, death):
    check_end(start(f"if rank == 1: {death}\nsignal.pause()"), way, DEATHS[death])
    assert seen(work) == ["begins SIGTERM", "begins"]


@pytest.mark.parametrize("name", JOBS)
def test_a_job_of_two_ranks(work, way, start, name):
    flags, code, status, ranks = JOBS[name]
    check_end(start(code, *flags.split()), way, status)
    assert seen(work) == ranks


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_to_the_launcher_ends_the_job(work, way, start, name):
    job = start("signal.pause()")
    both = [work.directory / f"rank{rank}" for rank in (0, 1)]
    wait_until(lambda: all(path.exists() and path.read_text().strip() for path in both), "both ranks run")
    job.send_signal(signal.Signals[name])
    _, said = job.communicate(timeout=90)
    signaled, status = SIGNALS[name] if way == "fleetrun" else (name, 1)
    assert job.returncode == status, said
    assert seen(work) == [f"begins {signaled}"] * 2

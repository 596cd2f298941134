"""Readers of their own that keep their place with their pushes: fleetrun.ps.Position."""

import subprocess
import sys

import pytest

from conftest import environment
from flow import LIMIT
from fleetrun_job import find_fleetrun

# Each example has a key of its own, whose row counts how often it was pushed. A batch is as large as its
# place says; processes are killed at random, with a push under way.
STREAM = """
import os, random, signal, sys, threading
import numpy as np
from fleetrun import ps

LIVES, EXAMPLES = 5, 6000
rank = int(os.environ["FLEETRUN_RANK"])
role = "server" if ps.is_server() else "trainer"
with open(f"lives-{role}-{rank}", "a") as file:
    file.write(".")
lives = os.stat(f"lives-{role}-{rank}").st_size
random.seed(f"{role} {rank} {lives}")


def die_later():
    if lives <= (LIVES if role == "trainer" else 2):
        threading.Timer(random.uniform(0.05, 0.3), lambda: os.kill(os.getpid(), signal.SIGKILL)).start()


tables = [ps.SparseTable("count", 1, rule="sum"), ps.PositionTable()]
if role == "server":
    server = ps.Server(tables)
    die_later()
    server.wait()
    sys.exit(0)
first = rank * 2**40
with ps.Client(tables, identity=1 + rank) as client:
    position = ps.Position(client)
    die_later()
    at = position.offset or first
    while at < first + EXAMPLES or lives <= LIVES:  # who is to die reads on until it does
        examples = np.arange(at, at + 1 + at * 7 % 5)
        position.push({"count": (examples, np.ones((len(examples), 1)))}, int(at + len(examples)))
        at = position.offset
    client.barrier()
    counts = client.pull("count", np.arange(first, at), create=False)
    print("counted", at - first, float(counts.min()), float(counts.max()), client.rows("count"), flush=True)
    client.barrier()
"""


def test_a_reader_that_is_killed_goes_on_where_it_was_with_each_example_once(tmp_path):
    (tmp_path / "stream.py").write_text(STREAM)
    command = [find_fleetrun(), "--server_num=2", "--trainer_num=2", f"--python={sys.executable}",
               "--max_restart=30", "--restart_backoff=0", "--same_failure_limit=0", "stream.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr + done.stdout
    said = [line.split() for rank in (0, 1)
            for path in sorted((tmp_path / "log").glob(f"workerlog.{rank}*"))
            for line in path.read_text().splitlines() if line.startswith("counted")]
    assert len(said) == 2 and all(words[2:4] == ["1.0", "1.0"] for words in said), said
    assert all(int(words[4]) == sum(int(words[1]) for words in said) for words in said), said
    assert [(tmp_path / f"lives-trainer-{rank}").stat().st_size for rank in (0, 1)] == [6, 6]


ONE = """
import sys
import numpy as np
from fleetrun import ps
from fleetrun._error import Error


def lost_answer(tables):
    raise Error("timeout", "server 0 has not answered")


with ps.Client([ps.SparseTable("emb", 1), ps.PositionTable()], identity=7) as client:
    position = ps.Position(client)
    assert position.offset == 0
    for offset in (5, 2**64 - 1, 2**63, 0, 2**44 + 2**22 - 1):
        position.push({"emb": ([1], [[0.5]])}, offset)
        assert position.offset == offset and ps.Position(client).offset == offset
    for refused in (-1, 2**64, 1.5, None):
        try:
            position.push({}, refused)
            raise SystemExit(f"{refused} was taken")
        except Error as error:
            assert "not a whole number from 0 to 2**64 - 1" in error.what
    try:
        position.push({"emb": ([1], [[np.nan]])}, 9)
        raise SystemExit("a NaN was taken")
    except Error as error:
        assert error.kind == "data"
    position.push({"emb": ([1], [[0.5]])}, 10)
    assert ps.Position(client).offset == 10
    push_many, client.push_many = client.push_many, lost_answer
    try:
        position.push({"emb": ([1], [[0.5]])}, 11)
    except Error as error:
        assert error.kind == "timeout"
    client.push_many = push_many
    try:
        position.push({"emb": ([1], [[0.5]])}, 12)
        raise SystemExit("a push whose predecessor is anywhere was taken")
    except Error as error:
        assert error.what == "an earlier push of this position failed, and may have been applied"
    client.save("saved")
with ps.Client([ps.SparseTable("emb", 1), ps.PositionTable()], identity=7) as client:
    client.load("saved")
    assert ps.Position(client).offset == 10
"""
REFUSED = {
    'ps.Position(ps.Client([ps.PositionTable()]))':
        "a position of a client with the identity 0",
    'ps.Position(ps.Client([ps.PositionTable()], mode="geo"))':
        "a position in mode 'geo', which changes what pushes add up to",
    'ps.Position(ps.Client([ps.SparseTable("position", 9)], identity=1))':
        "table 'position' is not for positions",
    'ps.Position(ps.Client([ps.PositionTable("other")], identity=1))':
        "there is no table 'position'",
    'import os; os.environ["FLEETRUN_PS_GRADIENTS"] = "fp16"; '
    'ps.Position(ps.Client([ps.PositionTable()], identity=1))':
        "a position with FLEETRUN_PS_GRADIENTS=fp16, which cuts off what is pushed",
}  # fmt: skip


def run(directory, script):
    return subprocess.run([sys.executable, "-c", script], cwd=directory, env=environment(), timeout=LIMIT,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)


def test_a_place_is_any_whole_number_and_is_saved(tmp_path):
    done = run(tmp_path, ONE)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("script", REFUSED)
def test_what_is_no_place_is_refused(tmp_path, script):
    done = run(tmp_path, "from fleetrun import ps\n" + script)
    assert done.returncode != 0 and REFUSED[script] in done.stderr, done.stderr

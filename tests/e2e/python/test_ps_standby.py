"""Jobs whose parameter servers are killed, their directories removed, and go on from their standbys."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import environment
from flow import LIMIT
from fleetrun_job import find_fleetrun, wait_until

COUNT = """
import json, os, sys
import numpy as np
from fleetrun import ps

tables = [ps.SparseTable("count", 1, rule="sum")]
if ps.is_server():
    server = ps.Server(tables)
    rank = os.environ["FLEETRUN_RANK"]
    with open(f"server-{rank}.new", "w") as file:
        file.write(str(os.getpid()))
    os.replace(f"server-{rank}.new", f"server-{rank}")
    server.wait()
    sys.exit(0)
rank = int(os.environ["FLEETRUN_RANK"])
with open(f"trainer-{rank}", "w") as file:
    file.write(str(os.getpid()))
answered = os.open(f"answered-{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
pushes = 0
with ps.Client(tables) as client:
    while not os.path.exists("enough"):
        client.push("count", np.array([pushes % 7, 7 + pushes % 5], np.uint64), np.ones((2, 1), "float32"))
        pushes += 1
        os.write(answered, b".")
        if rank == 0:
            with open("stat.new", "w") as file:
                json.dump([pushes, client.stat()], file)
            os.replace("stat.new", "stat")
    total = client.sum([float(pushes)])[0]
    if rank == 0:
        rows = client.pull("count", np.arange(12, dtype=np.uint64))[:, 0]
        with open("result", "w") as file:
            json.dump([float(rows.sum()), 2 * float(total)], file)
    client.barrier()
"""


class Job:
    """Two servers, which stand by for each other unless said otherwise; two trainers count until there is a
    file `enough`."""

    def __init__(self, directory, *flags, restarts=50, script=COUNT):
        self.directory = directory
        (directory / "count.py").write_text(script)
        command = [find_fleetrun(), "--server_num=2", "--trainer_num=2", f"--python={sys.executable}",
                   *(flags or ["--ps_replicas=1", "--ps_checkpoint=kept"]), f"--max_restart={restarts}",
                   "--restart_backoff=0", "count.py"]
        with open(directory / "said", "wb") as said:
            self.process = subprocess.Popen(command, cwd=directory, env=environment(),
                                            stdin=subprocess.DEVNULL, stdout=said, stderr=said)

    def server(self, rank):
        return int((self.directory / f"server-{rank}").read_text())

    def stat(self):
        """How many pushes trainer 0 had made when it asked, and what both servers said."""
        try:
            with open(self.directory / "stat") as file:
                return json.load(file)
        except FileNotFoundError:
            return [0, []]

    def wait_for_standbys(self):
        before = self.stat()[0]

        def follow():
            assert self.process.poll() is None, (self.directory / "said").read_text()
            pushes, servers = self.stat()
            return pushes > before + 1 and all(
                one["standby"]["follows"] and one.get("holds", [{}])[0].get("whole") for one in servers)

        wait_until(follow, "both standbys", LIMIT)

    def said(self):
        return (self.directory / "said").read_text(errors="replace")

    def answered(self):
        return sum(path.stat().st_size for path in self.directory.glob("answered-*"))

    def kill(self, rank):
        """Returns once another process serves."""
        before = self.server(rank)
        os.kill(before, signal.SIGSTOP)  # it writes nothing into a directory that goes
        [kept] = self.directory.glob(f"**/server-{rank:05}")
        shutil.rmtree(kept)
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: self.server(rank) != before or self.process.poll() is not None, "another process",
                   LIMIT)

    def lose(self, rank):
        """Kills a server that nobody stands by for. Returns what was said; the job must have ended."""
        self.kill(rank)
        assert self.process.wait(LIMIT) != 0, self.said()
        assert not (self.directory / "result").exists()
        return self.said() + self.logs(rank)

    def end(self):
        (self.directory / "enough").touch()
        status = self.process.wait(LIMIT)
        assert status == 0, (self.directory / "said").read_text()
        with open(self.directory / "result") as file:
            return json.load(file)

    def logs(self, rank):
        logs = self.directory.glob(f"log/*/*/serverlog.{rank}")
        return "".join(log.read_text(errors="replace") for log in logs)


@pytest.fixture
def job(tmp_path):
    jobs = []

    def start(*flags, **options):
        jobs.append(Job(tmp_path, *flags, **options))
        return jobs[-1]

    yield start
    for one in jobs:
        one.process.kill()
        one.process.wait()


def test_servers_that_lose_their_directories_lose_no_push(job):
    running = job()
    draw = random.Random(21)
    kills = [0, 0]
    for _ in range(6):
        running.wait_for_standbys()
        before = running.answered()
        wait_until(lambda: running.answered() > before + 20, "pushes", LIMIT)
        rank = draw.randrange(2)
        kills[rank] += 1
        running.kill(rank)
    rows, pushed = running.end()
    assert rows == pushed
    for rank in (0, 1):
        assert running.logs(rank).count(f"goes on from its standby on server {1 - rank}") == kills[rank]


def test_a_server_and_its_standby_go_on_from_their_directories(job):
    running = job()
    running.wait_for_standbys()
    wait_until(lambda: running.answered() > 50, "pushes", LIMIT)
    pids = [running.server(rank) for rank in (0, 1)]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: all(running.server(rank) != pids[rank] for rank in (0, 1)), "other processes", LIMIT)
    running.wait_for_standbys()
    rows, pushed = running.end()
    assert rows == pushed
    assert "goes on from checkpoint" in running.logs(0) + running.logs(1)


def test_a_server_and_its_standby_that_lose_all_end_the_job_by_name(job):
    running = job(restarts=2)
    running.wait_for_standbys()
    wait_until(lambda: running.answered() > 50, "pushes", LIMIT)
    pids = [running.server(rank) for rank in (0, 1)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    shutil.rmtree(running.directory / "kept")
    (running.directory / "kept").mkdir()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert running.process.wait(LIMIT) != 0
    assert "has lost its tables" in running.said()
    assert any(f"and its standby on server {1 - rank} does not answer" in running.logs(rank)
               for rank in (0, 1))


@pytest.mark.parametrize("flags", [["--ps_checkpoint=kept"], ["--log_dir=log"],
                                   ["--ps_checkpoint=kept", "--ps_checkpoint_found=resume"]])
def test_nobody_trains_on_empty_tables_in_the_place_of_lost_ones(job, flags):
    running = job(*flags, restarts=2)
    wait_until(lambda: running.answered() > 50, "pushes", LIMIT)
    said = running.lose(1)
    assert "server 1 has lost its tables: what its earlier process kept in " in said
    assert "--ps_replicas=1" in said


@pytest.mark.parametrize("saves", ["client.save(os.path.abspath(f'saved-{rank}'))",
                                   "client.export(os.path.abspath(f'export-{rank}-{pushes}'))"])
def test_servers_that_die_while_they_save_save_all_the_same(tmp_path, job, saves):
    counts = "        pushes += 1\n"
    running = job("--ps_checkpoint=kept", script=COUNT.replace(counts, f"        {saves}\n{counts}"))
    for rank in (0, 1, 0, 1):
        before = running.answered()
        wait_until(lambda: running.answered() > before + 4, "saves", LIMIT)
        pid = running.server(rank)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: running.server(rank) != pid, "another process", LIMIT)
    rows, pushed = running.end()
    assert rows == pushed
    assert "trainer 0 is started again" not in running.said()
    assert "trainer 1 is started again" not in running.said()


def test_a_server_that_dies_before_it_serves_has_lost_nothing(tmp_path, job):
    (tmp_path / "first-time").touch()
    running = job("--ps_checkpoint=kept", script="""
import os, sys
if os.environ["TRAINING_ROLE"] + os.environ["FLEETRUN_RANK"] == "PSERVER1" and os.path.exists("first-time"):
    os.remove("first-time")
    sys.exit(3)
""" + COUNT)
    wait_until(lambda: running.answered() > 50, "pushes", LIMIT)
    rows, pushed = running.end()
    assert rows == pushed
    assert "server 1 is started again" in running.said()


def test_a_job_that_is_started_again_whole_says_what_becomes_of_its_tables(job):
    running = job("--ps_checkpoint=kept", "--restart=server=group,trainer=group", restarts=2)
    wait_until(lambda: running.answered() > 50, "pushes", LIMIT)
    before = [running.server(rank) for rank in (0, 1)]
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: all(running.server(rank) != before[rank] for rank in (0, 1)), "other servers", LIMIT)
    said = "attempt 1: the servers begin with empty tables, and of those before only what the script has"
    wait_until(lambda: said in running.said(), "what was lost is said", LIMIT)
    rows, pushed = running.end()
    assert rows == pushed  # of the second attempt alone


@pytest.mark.parametrize("found", ["resume", "require"])
def test_a_job_that_resumes_is_not_started_again_without_what_it_has_kept(job, found):
    first = job("--ps_checkpoint=kept", restarts=0)
    wait_until(lambda: first.answered() > 50, "pushes", LIMIT)
    first.end()
    for name in ("enough", "result", "server-0", "server-1"):
        (first.directory / name).unlink()
    before = first.answered()
    second = job("--ps_checkpoint=kept", f"--ps_checkpoint_found={found}", "--restart=trainer=group",
                 restarts=2)
    wait_until(lambda: second.answered() > before + 50, "pushes", LIMIT)
    trainers = [int(path.read_text()) for path in second.directory.glob("trainer-*")]
    shutil.rmtree(second.directory / "kept")
    os.kill(trainers[0], signal.SIGKILL)
    assert second.process.wait(LIMIT) != 0
    assert "has lost its tables" in second.said() + second.logs(0) + second.logs(1)


def test_servers_of_which_one_has_no_checkpoint_do_not_resume(job):
    first = job("--ps_checkpoint=kept", restarts=0)
    wait_until(lambda: first.answered() > 50, "pushes", LIMIT)
    first.end()
    shutil.rmtree(first.directory / "kept" / "server-00001")
    (first.directory / "result").unlink()
    second = job("--ps_checkpoint=kept", "--ps_checkpoint_found=resume", restarts=0)
    assert second.process.wait(LIMIT) == 125
    assert "has a checkpoint of server 0, and none of server 1" in second.said()


@pytest.mark.parametrize("flags,says", [
    (["--server_num=1", "--ps_replicas=1"], "--ps_replicas=1 with 1 server: its standby is another server"),
    (["--server_num=2", "--ps_replicas=1", "--restart=server=group"],
     "--ps_replicas=1 for servers that are not started again alone"),
    (["--server_num=2", "--ps_replicas=2"], "--ps_replicas is '2'"),
])
def test_what_a_standby_does_not_go_with_is_refused(tmp_path, flags, says):
    (tmp_path / "count.py").write_text(COUNT)
    done = subprocess.run([find_fleetrun(), "--trainer_num=1", *flags, "count.py"],
                          cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=LIMIT)
    assert done.returncode == 125
    assert says in done.stderr.splitlines()[0]

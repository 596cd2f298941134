"""Servers of several hosts that stand by for each other."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import sys

import pytest

from cluster_job import has_package, training_environment
from fleetrun_job import wait_until

COUNT = """
import json, os, sys
import numpy as np
from fleetrun import ps

tables = [ps.SparseTable("count", 1, rule="sum")]
rank = os.environ["FLEETRUN_RANK"]
if ps.is_server():
    server = ps.Server(tables)
    print("SERVES", os.getpid(), flush=True)
    server.wait()
    sys.exit(0)
pushes = 0
with ps.Client(tables) as client:
    while not os.path.exists("enough"):
        client.push("count", np.array([pushes % 7, 7 + pushes % 5], np.uint64), np.ones((2, 1), "float32"))
        pushes += 1
        if rank == "0":
            with open("stat.new", "w") as file:
                json.dump([pushes, client.stat()], file)
            os.replace("stat.new", "stat")
    total = client.sum([float(pushes)])[0]
    if rank == "0":
        rows = client.pull("count", np.arange(12, dtype=np.uint64))[:, 0]
        with open("result", "w") as file:
            json.dump([float(rows.sum()), 2 * float(total)], file)
    client.barrier()
"""


class Counting:
    """A server and a trainer on each of two hosts, in a directory that they share."""

    def __init__(self, rig, *flags):
        rig.share_secret()
        self.folder = rig.shared / f"count-{len(rig.jobs)}"
        self.folder.mkdir()
        (self.folder / "count.py").write_text(COUNT)
        self.hosts = rig.hosts[:2]
        flags = [f"--master={self.hosts[0].address}:6768", "--nnodes=2", "--server_num=1", "--trainer_num=1",
                 "--python", sys.executable, "--ps_replicas=1", f"--ps_checkpoint={rig.place}/kept", *flags]
        self.jobs = [host.start(*flags, f"--log_dir={self.folder}/log-{host.name}", "count.py",
                                directory=self.folder, environment=training_environment(host))
                     for host in self.hosts]

    def story(self):
        return "".join(job.err for job in self.jobs) + self.logs()

    def logs(self):
        return "".join(path.read_text() for path in self.folder.glob("log-*/*/*/*log.0"))

    def stat(self):
        try:
            return json.loads((self.folder / "stat").read_text())
        except FileNotFoundError:
            return [0, []]

    def wait_for_standbys(self):
        before = self.stat()[0]

        def follow():
            assert all(job.process.poll() is None for job in self.jobs), self.story()
            pushes, servers = self.stat()
            return pushes > before + 1 and all(
                one["standby"]["follows"] and one.get("holds", [{}])[0].get("whole") for one in servers)

        try:
            wait_until(follow, "both standbys")
        except AssertionError as wrong:
            raise AssertionError(f"{wrong}\n{self.story()}") from None

    def server_on(self, host):
        """Its process, as seen from here."""
        for pid in host.pids():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                process = pathlib.Path(f"/proc/{pid}")
                words = (process / "environ").read_text().split("\0")
                if "TRAINING_ROLE=PSERVER" in words and "count.py" in (process / "cmdline").read_text():
                    return pid
        return None


@pytest.fixture
def counting(rig):
    if not has_package():
        pytest.skip("the Python package is not installed")
    return lambda *flags: Counting(rig, *flags)


def test_a_server_takes_its_tables_back_from_the_other_host(counting):
    job = counting()
    for _, host in zip(range(3), [*job.hosts, *job.hosts]):
        job.wait_for_standbys()
        assert [one["standby"]["on"] for one in job.stat()[1]] == ["server 1", "server 0"]
        before = job.server_on(host)
        os.kill(before, signal.SIGSTOP)  # it writes nothing into a directory that goes
        shutil.rmtree(host.files / "kept")
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: job.server_on(host) not in (None, before), "another process")
    job.wait_for_standbys()
    (job.folder / "enough").touch()
    for one in job.jobs:
        assert one.finish().status == 0, job.story()
        assert "--ps_replicas=1: a server that dies is started again on its own host" in one.err
    rows, pushed = json.loads((job.folder / "result").read_text())
    assert rows == pushed > 0
    assert job.logs().count("goes on from its standby on server") == 3


def test_a_host_that_is_lost_with_its_server_ends_the_job_by_name(counting):
    job = counting("--restart=trainer=never", "--elastic_timeout=2", "--lost_after=3")
    job.wait_for_standbys()
    job.hosts[1].power_off()
    assert job.jobs[0].finish().status != 0
    assert "h2" in job.jobs[0].err
    assert not (job.folder / "result").exists()

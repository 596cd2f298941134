"""Servers of several hosts that stand by for each other."""

import contextlib
import json
import os
import pathlib
import re
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
        return server_on(host, "count.py")


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
        assert "with --nnodes=MIN:MAX their standbys serve for them" in one.err
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


RECEIPTS = """
import json, os, sys, time
import numpy as np
from fleetrun import ps

tables = [ps.SparseTable("count", 1, rule="sum")]
rank = int(os.environ["FLEETRUN_RANK"])
if ps.is_server():
    server = ps.Server(tables)
    print("SERVES", os.getpid(), flush=True)
    server.wait()
    sys.exit(0)

def write(name, value):
    with open(name + ".new", "w") as file:
        json.dump(value, file)
    os.replace(name + ".new", name)

keys = np.arange(8, dtype=np.uint64) + 100 * rank
acknowledged, longest = 0, 0.0
with ps.Client(tables) as client:
    while not os.path.exists("enough"):
        write(f"begun-{rank}", acknowledged + 1)
        began = time.monotonic()
        client.push("count", keys, np.ones((8, 1), "float32"))
        longest = max(longest, time.monotonic() - began)
        acknowledged += 1
        write(f"acknowledged-{rank}", [acknowledged, longest])
        if rank == 0:
            write("stat", client.stat())
    client.barrier()
    if rank == 0:
        write("result", [client.pull("count", np.arange(8, dtype=np.uint64) + 100 * r)[:, 0].tolist()
                         for r in range(client.trainers)])
    client.barrier()
"""


def server_on(host, script):
    """Its process, as seen from here."""
    for pid in host.pids():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            process = pathlib.Path(f"/proc/{pid}")
            words = (process / "environ").read_text().split("\0")
            if "TRAINING_ROLE=PSERVER" in words and script in (process / "cmdline").read_text():
                return pid
    return None


class Receipts:
    """A server and a trainer on each host; each trainer counts in rows of its own, and writes down what it
    begins and what was acknowledged."""

    def __init__(self, rig, hosts, *flags, most=None):
        rig.share_secret()
        self.folder = rig.shared / f"receipts-{len(rig.jobs)}"
        self.folder.mkdir()
        (self.folder / "train.py").write_text(RECEIPTS)
        self.hosts = rig.hosts[:hosts]
        flags = [f"--master={self.hosts[0].address}:6768", f"--nnodes=1:{most or hosts}", "--server_num=1",
                 "--trainer_num=1", "--python", sys.executable, "--ps_replicas=1", "--max_restart=3",
                 f"--ps_checkpoint={rig.place}/kept", *flags]
        self.jobs = {host: host.start(*flags, f"--rank={rank}", f"--log_dir={self.folder}/log-{host.name}",
                                      "train.py", directory=self.folder,
                                      environment=training_environment(host))
                     for rank, host in enumerate(self.hosts)}

    def story(self):
        return "".join(job.err for job in self.jobs.values()) + "".join(
            f"--- {path}\n{path.read_text()}" for path in sorted(self.folder.glob("log-*/*/*/*log.0")))

    def read(self, name, otherwise=None):
        with contextlib.suppress(FileNotFoundError):
            return json.loads((self.folder / name).read_text())
        return otherwise

    def wait(self, condition, what, seconds=60):
        try:
            return wait_until(condition, what, seconds)
        except AssertionError as wrong:
            raise AssertionError(f"{wrong}\n{self.story()}") from None

    def wait_for_standbys(self):
        before = self.pushes(0)

        def follow():
            servers = self.read("stat", [])
            held = [one for server in servers for one in server.get("holds", [])]
            return (self.pushes(0) > before + 1 and len(servers) == len(held) == len(self.hosts)
                    and all(server["standby"]["follows"] for server in servers)
                    and all(one["whole"] for one in held))

        self.wait(follow, "all standbys")

    def pod_of(self, host):
        return re.search(r"Run Pod: (\w+)", self.jobs[host].err).group(1)

    def pushes(self, rank):
        return self.read(f"acknowledged-{rank}", [0, 0.0])[0]

    def wait_for_pushes(self, ranks, more=5):
        before = {rank: self.pushes(rank) for rank in ranks}
        self.wait(lambda: all(self.pushes(rank) >= before[rank] + more for rank in ranks), "more pushes")

    def finish(self, *lost):
        """All rows are what was acknowledged, and those of a lost trainer at most what it had begun."""
        (self.folder / "enough").touch()
        for host, job in self.jobs.items():
            if host not in lost:
                assert job.finish(60).status == 0, self.story()
        for rank, rows in enumerate(self.read("result")):
            acknowledged, begun = self.pushes(rank), self.read(f"begun-{rank}")
            if self.hosts[rank] in lost:
                assert all(acknowledged <= row <= begun for row in rows), (rank, rows, acknowledged, begun)
            else:
                assert rows == [acknowledged] * 8, (rank, rows, acknowledged, begun)


@pytest.fixture
def receipts(rig):
    if not has_package():
        pytest.skip("the Python package is not installed")
    return lambda hosts, *words, **options: Receipts(rig, hosts, *words, **options)


@pytest.mark.parametrize("hosts,lost", [(2, 2), (3, 2)])
def test_the_servers_of_a_lost_host_are_served_by_their_standbys(receipts, hosts, lost):
    job = receipts(hosts)
    job.wait_for_standbys()
    job.wait_for_pushes(range(hosts))
    gone = job.hosts[lost - 1]
    gone.power_off()
    shutil.rmtree(gone.files / "kept")
    living = [rank for rank in range(hosts) if rank != lost - 1]
    job.wait_for_pushes(living)
    longest = max(job.read(f"acknowledged-{rank}")[1] for rank in living)
    print(f"the longest push took {longest:.2f} s")
    assert longest < 3 + 2, "3 s to find out, and a second"
    stat = job.hosts[0].run(["fleetrun", "ps", "stat", "--json", "--job", job.pod_of(job.hosts[0])]).stdout
    assert [json.loads(line)["server"] for line in stat.splitlines()] == list(range(hosts)), stat
    assert job.story().count("is served here from now on, for its host is lost") == 1
    # Started again, the process that serves two goes on with both.
    holder = job.hosts[lost % hosts]
    before = server_on(holder, "train.py")
    os.kill(before, signal.SIGKILL)
    job.wait(lambda: server_on(holder, "train.py") not in (None, before), "another process")
    job.wait_for_pushes(living)
    assert job.story().count("is served here from now on, for its host is lost") == 2, job.story()
    job.finish(gone)


@pytest.mark.parametrize("restarts", [False, True])
def test_hosts_are_lost_one_after_the_other(receipts, restarts):
    job = receipts(3)
    for count, gone in enumerate([job.hosts[2], job.hosts[1]], 1):
        job.wait_for_standbys()
        if restarts:  # a process that is started again has its standbys where they are now
            before = server_on(job.hosts[0], "train.py")
            os.kill(before, signal.SIGKILL)
            job.wait(lambda: server_on(job.hosts[0], "train.py") not in (None, before), "another process")
            job.wait_for_standbys()
        job.wait_for_pushes(range(4 - count))
        gone.power_off()
        shutil.rmtree(gone.files / "kept")
        job.wait_for_pushes(range(3 - count))
    longest = job.read("acknowledged-0")[1]
    print(f"the longest push took {longest:.2f} s")
    assert job.story().count("is served here from now on, for its host is lost") >= 2
    job.finish(*job.hosts[1:])


def test_the_only_host_that_came_trains_without_a_standby(receipts):
    job = receipts(1, "--elastic_timeout=1", most=2)
    job.wait_for_pushes([0])
    job.finish()
    assert "the only server that is left has no standby" in job.story()

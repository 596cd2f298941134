"""Hosts that meet by an etcd on another host, and cuts between them and it: each with its expected end."""

import re
import shutil
import sys
import time

import pytest

import etcd_server
from fleetrun_job import wait_until

pytestmark = pytest.mark.skipif(bool(etcd_server.why_not()), reason=str(etcd_server.why_not()))

ELASTIC = ("--nnodes=2:3", "--max_restart=10", "--restart_backoff=0", "--elastic_timeout=20")
LONG = 20


@pytest.fixture
def etcd(rig):
    """The fifth host; etcd_server's class is for one on this machine."""
    host = rig.hosts[4]
    url = f"http://{host.address}:2379"
    peer = f"http://{host.address}:2380"
    host.popen([shutil.which("etcd"), "--data-dir", host.rig.place / "etcd", "--listen-client-urls", url,
                "--advertise-client-urls",
                url, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster",
                f"default={peer}"],
               stdout=open(host.own / "etcd.log", "wb"), stderr=open(host.own / "etcd.log", "ab"))
    wait_until(lambda: "serving insecure client requests" in (host.own / "etcd.log").read_text(), "etcd")
    yield host
    host.kill_processes()
    shutil.rmtree(host.files / "etcd", ignore_errors=True)


@pytest.fixture
def trio(rig, team, etcd):
    """Three hosts in one world."""
    return Trio(rig, team, etcd)


class Trio:
    def __init__(self, rig, team, etcd):
        self.team, self.etcd, self.hosts = team, etcd, rig.hosts[:3]
        for host in self.hosts:
            team.jobs.append(host.start(f"--master=etcd://{etcd.name}", "--log_level=DEBUG", "--python",
                                        sys.executable, *ELASTIC,
                                        *team.script))
        self.first = team.wait_for_world(3, seconds=LONG)

    def leader(self):
        """The host whose launcher said first that it sees the others: only a coordinator does."""
        return next(job.host for job in self.team.jobs if re.search(r"LAUNCH DEBUG .* is here\n", job.err))

    def job(self, host):
        return next(job for job in self.team.jobs if job.host is host)

    def finish(self):
        self.team.order("all", "exit 0")
        assert set(self.team.finish(hosts=self.hosts, seconds=LONG).values()) == {0}


def epoch_of(world):
    return next(iter(world.values()))["epoch"]


def hosts_in(world):
    return sorted(record["host"] for record in world.values())


def others(trio, host):
    return [other for other in trio.hosts if other is not host]


def test_a_coordinator_that_is_cut_off_from_all_is_replaced_and_comes_back(trio):
    leader = trio.leader()
    lost = time.time()
    leader.link(up=False)
    second = trio.team.wait_for_world(2, after=epoch_of(trio.first), seconds=LONG)
    assert hosts_in(second) == sorted(host.name for host in others(trio, leader))
    assert min(record["at"] for record in second.values()) - lost < 8
    # It runs nothing that could take itself for the job.
    wait_until(lambda: not trio.team.workers_on(leader), "the end of what it runs")
    leader.link(up=True)
    third = trio.team.wait_for_world(3, after=epoch_of(second), seconds=LONG)
    assert hosts_in(third) == ["h1", "h2", "h3"]
    trio.finish()


def test_a_coordinator_that_only_etcd_cannot_hear_is_replaced_and_comes_back(trio):
    leader = trio.leader()
    trio.etcd.deaf_to(leader)
    # The others know it, and may take it in before they have formed without it:
    # then there is no world of two.
    wait_until(lambda: max(record["epoch"] for record in trio.team.records()) > epoch_of(trio.first),
               "another epoch", LONG)
    trio.etcd.hears()
    third = trio.team.wait_for_world(3, after=epoch_of(trio.first), seconds=LONG)
    assert hosts_in(third) == ["h1", "h2", "h3"]
    trio.finish()


def test_nothing_changes_while_etcd_is_cut_off_from_all(trio):
    trio.etcd.link(up=False)
    job = trio.job(trio.leader())
    job.says("has not answered for 2 s: running processes continue")
    # Longer than any lease: nobody is elected, and nobody stops.
    steps = trio.team.steps()
    wait_until(lambda: all(trio.team.steps()[who][0] > at + 4 for who, (at, _) in steps.items()),
               "steps of all")
    assert {record["epoch"] for record in trio.team.records()} == {epoch_of(trio.first)}
    trio.etcd.link(up=True)
    trio.finish()

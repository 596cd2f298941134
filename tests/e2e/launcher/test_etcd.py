"""Launchers that meet by --master etcd://…, with a real etcd."""

import os
import signal

import pytest

import etcd_server
from fleetrun_job import clean_environment, refused, wait_until

pytestmark = pytest.mark.skipif(bool(etcd_server.why_not()), reason=str(etcd_server.why_not()))

# Writes down who it is, and waits for the word to end.
WORKER = """#!/bin/sh
echo "$FLEETRUN_EPOCH $PADDLE_TRAINER_ID $PADDLE_TRAINERS_NUM" >>started
while [ ! -e {go} ]; do sleep 0.02; done
"""


@pytest.fixture
def etcd(tmp_path_factory):
    with etcd_server.Etcd(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture
def nodes(work, etcd, tmp_path_factory):
    return Nodes(work, etcd, tmp_path_factory.mktemp("home"))


class Nodes:
    """Launchers, each with an address and a directory of its own."""

    def __init__(self, work, etcd, home):
        self.work, self.etcd = work, etcd
        self.go = work.directory / "go"
        self.worker = work.script("worker.sh", WORKER.format(go=self.go), 0o755)
        self.environment = clean_environment(XDG_CONFIG_HOME=str(home), FLEETRUN_RUN_DIR=str(home / "run"))
        self.count = 0

    def start(self, *arguments, master=None, job="j"):
        self.count += 1
        place = self.work.directory / f"n{self.count}"
        place.mkdir()
        with open(place / "said", "wb") as said:
            node = self.work.start(f"--master={master or self.etcd.master}", f"--job_id={job}",
                                   f"--host=127.0.0.{self.count + 1}",
                                   f"--log_dir={place}/log", "--grace=2", *arguments, self.worker,
                                   environment=self.environment,
                                   stdout=said, stderr=said, preexec_fn=lambda: os.chdir(place))
        node.place = place
        return node

    def finish(self, *all_nodes, status=0):
        self.go.touch()
        for node in all_nodes:
            assert node.process.wait(30) == status, said(node)


def said(node):
    return (node.place / "said").read_text()


def worlds(node):
    """[(epoch, rank, size)] of its one process, one for each start."""
    file = node.place / "started"
    return [tuple(map(int, line.split())) for line in file.read_text().splitlines()] if file.exists() else []


def says(node, text):
    wait_until(lambda: text in said(node), f"{text!r} in what a launcher says")


def coordinator(etcd, nodes):
    """The node whose address etcd has."""
    value = wait_until(lambda: etcd.keys().get("/fleetrun/j/coordinator"), "a coordinator").decode()
    return next(node for i, node in enumerate(nodes) if f"127.0.0.{i + 2}:" in value)


def test_launchers_meet_and_leave_nothing(nodes, etcd):
    pair = [nodes.start("--nnodes=2") for _ in range(2)]
    for node in pair:
        wait_until(lambda: worlds(node), "a world")
    assert sorted(worlds(node)[0] for node in pair) == [(1, 0, 2), (1, 1, 2)]
    assert set(etcd.keys()) == {"/fleetrun/j/coordinator", "/fleetrun/j/state"}
    nodes.finish(*pair)
    assert etcd.keys() == {}


def test_a_job_id_can_be_used_again_at_once(nodes, etcd):
    for _ in range(3):
        nodes.go.unlink(missing_ok=True)
        pair = [nodes.start("--nnodes=2") for _ in range(2)]
        for node in pair:
            wait_until(lambda: worlds(node), "a world")
        nodes.finish(*pair)
        assert sorted(worlds(node)[0] for node in pair) == [(1, 0, 2), (1, 1, 2)]


def test_a_job_whose_launchers_were_all_killed_can_be_started_again(nodes, etcd):
    old = [nodes.start("--nnodes=2") for _ in range(2)]
    for node in old:
        wait_until(lambda: worlds(node), "a world")
    for node in old:
        node.signal(signal.SIGKILL)
        node.process.wait()
    new = [nodes.start("--nnodes=2") for _ in range(2)]
    for node in new:
        wait_until(lambda: worlds(node), "a world")
    assert sorted(worlds(node)[0][1:] for node in new) == [(0, 2), (1, 2)]
    assert worlds(new[0])[0][0] == worlds(new[1])[0][0] > 1  # epochs are never used twice
    nodes.finish(*new)


@pytest.mark.parametrize("who", ["coordinator", "other"])
def test_the_job_goes_on_without_a_launcher_that_is_killed(nodes, etcd, who):
    all_nodes = [nodes.start("--nnodes=2:3") for _ in range(3)]
    for node in all_nodes:
        wait_until(lambda: worlds(node), "a world")
    leader = coordinator(etcd, all_nodes)
    lost = leader if who == "coordinator" else next(node for node in all_nodes if node is not leader)
    lost.signal(signal.SIGKILL)
    left = [node for node in all_nodes if node is not lost]
    for node in left:
        wait_until(lambda: worlds(node)[-1][2] == 2, "a world of two")
    assert worlds(left[0])[-1][0] == worlds(left[1])[-1][0] > 1
    assert sorted(worlds(node)[-1][1] for node in left) == [0, 1]
    assert coordinator(etcd, all_nodes) in left
    nodes.finish(*left)
    assert etcd.keys() == {}


def test_a_coordinator_that_is_frozen_is_replaced_and_does_not_come_back(nodes, etcd):
    all_nodes = [nodes.start("--nnodes=2:3") for _ in range(3)]
    for node in all_nodes:
        wait_until(lambda: worlds(node), "a world")
    leader = coordinator(etcd, all_nodes)
    leader.signal(signal.SIGSTOP)
    left = [node for node in all_nodes if node is not leader]
    for node in left:
        wait_until(lambda: worlds(node)[-1][2] == 2, "a world of two")
    epoch = worlds(left[0])[-1][0]
    leader.signal(signal.SIGCONT)
    # It joins the others as a new node of theirs, or ends; never does it go on in its own world.
    wait_until(lambda: leader.process.poll() is not None or worlds(leader)[-1][0] > epoch,
               "the end of its own world")
    nodes.finish(*left)
    wait_until(lambda: leader.process.poll() is not None, "the end of the one that was frozen")


def test_the_job_goes_on_while_etcd_is_away(nodes, etcd):
    pair = [nodes.start("--nnodes=2") for _ in range(2)]
    for node in pair:
        wait_until(lambda: worlds(node), "a world")
    leader = coordinator(etcd, pair)
    etcd.kill()
    says(leader, "has not answered for 2 s: running processes continue")
    nodes.finish(*pair)
    assert [len(worlds(node)) for node in pair] == [1, 1]


def test_a_loss_while_etcd_is_away_is_mended_when_it_is_back(nodes, etcd):
    all_nodes = [nodes.start("--nnodes=2:3") for _ in range(3)]
    for node in all_nodes:
        wait_until(lambda: worlds(node), "a world")
    leader = coordinator(etcd, all_nodes)
    etcd.kill()
    lost = next(node for node in all_nodes if node is not leader)
    lost.signal(signal.SIGKILL)
    left = [node for node in all_nodes if node is not lost]
    says(leader, "has not answered for 2 s: running processes continue")
    assert all(len(worlds(node)) == 1 for node in left)
    etcd.start()
    for node in left:
        wait_until(lambda: worlds(node)[-1][2] == 2, "a world of two")
    nodes.finish(*left)


def test_an_etcd_that_is_not_there_is_named(nodes, etcd):
    etcd.kill()
    node = nodes.start("--nnodes=2", "--join_timeout=1")
    assert node.process.wait(30) == 125
    assert f"{etcd.master} could not be reached for " in said(node)
    assert "Connection refused" in said(node)


def test_an_etcd_that_comes_late_is_waited_for_and_that_is_said(nodes, etcd):
    etcd.kill()
    pair = [nodes.start("--nnodes=2") for _ in range(2)]
    for node in pair:
        says(node, f"{etcd.master} has not answered yet: ")
    etcd.start()
    for node in pair:
        wait_until(lambda: worlds(node), "a world")
    nodes.finish(*pair)


def test_a_login_is_used_and_never_shown(nodes, etcd):
    etcd.switch_logins_on("hush,hush")
    master = f"etcd://root:hush%2chush@{etcd.endpoint}"
    pair = [nodes.start("--nnodes=2", master=master) for _ in range(2)]
    for node in pair:
        wait_until(lambda: worlds(node), "a world")
    nodes.finish(*pair)
    for node in pair:
        for file in node.place.rglob("*"):
            if file.is_file():
                assert b"hush" not in file.read_bytes(), file
    wrong = nodes.start("--nnodes=2", master=f"etcd://root:bad@{etcd.endpoint}")
    assert wrong.process.wait(30) == 125
    assert "authentication failed" in said(wrong) and "check the user and the password" in said(wrong)


def test_nothing_of_the_secret_is_in_etcd(nodes, etcd):
    pair = [nodes.start("--nnodes=2") for _ in range(2)]
    for node in pair:
        wait_until(lambda: worlds(node), "a world")
    home = nodes.environment["XDG_CONFIG_HOME"]
    with open(f"{home}/fleetrun/secret") as file:
        secret = file.read().strip()
    for key, value in etcd.keys().items():
        assert secret.encode() not in value and bytes.fromhex(secret) not in value, key
    nodes.finish(*pair)


@pytest.mark.parametrize("address, says_so", [
    ("etcd://", "it has no host"),
    ("etcd://h:", "it has no port"),
    ("etcd://h:0", "its port '0' is not a number from 1 to 65535"),
    ("etcd://h:2379/v3", "it has a path"),
    ("etcd://root@h", "its user has no password"),
    ("etcd://h,,i", "one of its members is empty"),
    ("etcd://a b", "is not a host name"),
])
def test_what_is_no_address_of_an_etcd_is_refused(work, address, says_so):
    refused(work, "--nnodes=2", f"--master={address}", "x.sh", says=says_so)

"""F39: between a host and the coordinator lies a wire that is slow,
cuts bytes in pieces, loses, repeats or changes them."""

import pytest

from fleetrun_job import wait_until
from fxproxy import Proxy


@pytest.fixture
def wire(rig):
    """A proxy on h3 through which a host reaches the coordinator on h1."""
    with Proxy(to=(rig.hosts[0].address, 6768), listen=(rig.hosts[2].address, 6768),
               host=rig.hosts[2]) as proxy:
        yield proxy


def meet_over(rig, team, flags=("--nnodes=2",)):
    """h1 coordinates, and h2 believes that h3 does."""
    h1, h2, h3, *_ = rig.hosts
    team.start(h1, *flags)
    team.start(h2, *flags, master=h3)


def connections(wire):
    return int(wire.do("count").split()[1])


def another_connection(team, wire, before):
    """Waits for the host to dial anew."""
    def dialled():
        assert team.jobs[1].process.poll() is None, team.story()
        return connections(wire) > before

    wait_until(dialled, "another connection", 10)


def finish(rig, team):
    team.order("all", "exit 0")
    assert set(team.finish(hosts=rig.hosts[:2]).values()) == {0}


@pytest.mark.parametrize("what", ["both slice 1", "both delay 100 50", "both rate 20000"])
def test_hosts_meet_over_a_slow_wire(rig, team, wire, what):
    wire.do(what)
    meet_over(rig, team)
    team.wait_for_world(2, seconds=20)
    finish(rig, team)


@pytest.mark.parametrize("what", ["down limit 20", "up limit 60 rst"])
def test_a_meeting_that_breaks_off_is_tried_again(rig, team, wire, what):
    wire.do(what)
    meet_over(rig, team)
    another_connection(team, wire, 1)
    assert not team.records()
    wire.do("clear")
    team.wait_for_world(2)
    assert len(team.worlds()) == 1
    finish(rig, team)


def test_a_world_that_is_cut_off_on_its_way_is_told_again(rig, team, wire):
    """h2 has joined, and its world is lost: h1 starts by it,
    h2 does when it has dialled anew, in the same epoch."""
    h1, *_ = rig.hosts
    wire.do("down limit 150 rst")
    meet_over(rig, team)
    another_connection(team, wire, 1)
    assert {record["host"] for record in team.records()} <= {h1.name}
    wire.do("clear")
    team.wait_for_world(2)
    assert len(team.worlds()) == 1
    finish(rig, team)


def test_a_connection_that_is_reset_goes_on_without_a_new_epoch(rig, team, wire):
    meet_over(rig, team, ("--nnodes=2", "--max_restart=3", "--restart_backoff=0"))
    team.wait_for_world(2)
    for _ in range(3):
        before = connections(wire)
        wire.do("reset")
        another_connection(team, wire, before)
    team.order("rank-0", "exit 0")
    finish(rig, team)
    assert len(team.worlds()) == 1


def test_what_was_recorded_is_worth_nothing_to_who_sends_it_again(rig, team, wire):
    meet_over(rig, team)
    team.wait_for_world(2)
    for _ in range(3):
        wire.do("replay")
    assert len(team.worlds()) == 1 and all(job.process.poll() is None for job in team.jobs)
    finish(rig, team)


def test_bytes_that_change_on_a_running_job_are_noticed_and_do_no_harm(rig, team, wire):
    meet_over(rig, team, ("--nnodes=2", "--max_restart=3", "--restart_backoff=0", "--elastic_timeout=20"))
    team.wait_for_world(2)
    before = connections(wire)
    wire.do("both flip 0.05")
    another_connection(team, wire, before)
    wire.do("clear")
    team.order("rank-0", "exit 0")
    finish(rig, team)
    team.check_worlds()

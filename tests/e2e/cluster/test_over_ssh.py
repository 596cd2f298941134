"""One command on one host starts all over a real sshd;
hosts that cannot take part, and heads that are gone."""

import signal
import sys

import pytest

from cluster_job import QUICK
from fleetrun_job import wait_until


def test_one_command_starts_every_host_and_ends_with_the_job(rig, team):
    h1, h2, h3, *_ = rig.hosts
    team.from_here(h1, "h1:1,h2:2,h3:1")
    world = team.wait_for_world(4)
    assert [world[f"rank-{rank}"]["host"] for rank in range(4)] == ["h1", "h2", "h2", "h3"]
    assert {record["directory"] for record in world.values()} == {str(rig.place)}
    team.order("all", "exit 0")
    assert team.finish() == {"h1": 0}
    for host in (h2, h3):
        assert list((host.files / "log").glob("**/workerlog.*")), f"no log on {host.name}"



def test_servers_and_trainers_get_contiguous_ranks_over_uneven_hosts(rig, team):
    """torchelastic: test_correct_rank_assignment_heterogeneous, with its role ps."""
    h1, *_ = rig.hosts
    team.from_here(h1, "h1:servers=1:trainers=2,h2:servers=2:trainers=1,h3:trainers=3,h4:servers=1",
                   "--run_mode=ps")
    world = team.wait_for_world(6, servers=4)
    places = {who: record["host"] for who, record in world.items()}
    assert [places[f"rank-{rank}"] for rank in range(6)] == ["h1", "h1", "h2", "h3", "h3", "h3"]
    assert [places[f"server-{rank}"] for rank in range(4)] == ["h1", "h2", "h2", "h4"]
    for record in world.values():
        told = record["environment"]
        endpoints = told["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
        assert [endpoint.partition(":")[0] for endpoint in endpoints] == ["10.77.0.1", "10.77.0.2",
                                                                          "10.77.0.2", "10.77.0.4"]
    team.order("all", "exit 0")
    assert team.finish() == {"h1": 0}


def test_hosts_that_hold_no_secret_of_their_own_get_the_jobs(rig, team):
    h1, h2, *_ = rig.hosts
    for host in (h1, h2):
        (host.home / ".config" / "fleetrun" / "secret").unlink()
    team.from_here(h1, [h1, h2])
    team.wait_for_world(2)
    team.order("all", "exit 0")
    assert team.finish() == {"h1": 0}
    assert not (h2.home / ".config" / "fleetrun" / "secret").exists()


def test_an_exit_status_of_a_far_process_is_the_commands(rig, team):
    job = team.from_here(rig.hosts[0], rig.hosts[:3])
    world = team.wait_for_world(3)
    team.order("rank-2", "raise the far disk is full")
    assert team.finish() == {"h1": 1}
    assert "the far disk is full" in job.err + job.out and world["rank-2"]["host"] in job.err + job.out


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_the_command_ends_the_job_on_all_hosts(rig, team, number, status):
    job = team.from_here(rig.hosts[0], rig.hosts[:3])
    team.wait_for_world(3)
    job.signal(number)
    assert team.finish() == {"h1": status}


def test_hosts_that_cannot_be_reached_are_all_named_and_nothing_is_left_on_the_others(rig, team):
    """F70."""
    h1, h2, h3, h4, h5 = rig.hosts
    h3.power_off()
    h5.link(up=False)
    job = team.from_here(h1, rig.hosts[:5], "--join_timeout=8")
    assert team.finish(seconds=20, hosts=[h1, h2, h4]) == {"h1": 125}
    assert "h3" in job.err and "h5" in job.err and not team.records()


def test_a_host_whose_key_is_unknown_or_whose_fleetrun_is_missing_is_told_in_one_line(rig, team):
    """F69."""
    h1, h2, *_ = rig.hosts
    known = rig.directory / "known_hosts"
    lines = known.read_text()
    try:
        known.write_text("".join(line for line in lines.splitlines(True) if not line.startswith("h2,")))
        job = team.from_here(h1, [h1, h2])
        assert team.finish(seconds=20) == {"h1": 125}
    finally:
        known.write_text(lines)
    assert "h2" in job.err and "key" in job.err.lower() and not team.records(), job.err
    job = team.from_here(h1, [h1, h2], "--path=/nowhere/fleetrun")
    team.finish([job], seconds=20)
    assert job.status in (125, 127) and "/nowhere/fleetrun" in job.err, job.err


@pytest.mark.parametrize("variable,lines", [
    ("PBS_NODEFILE", "h1\nh1\nh2\nh2\n"),
    ("OAR_NODEFILE", "h1\nh1\nh2\nh2\n"),
    ("OMPI_MCA_orte_default_hostfile", "h1 slots=2\nh2 slots=2\n"),
    ("HYDRA_HOST_FILE", "h1:2\nh2:2\n"),
    ("LSB_DJOB_HOSTFILE", "h1\nh1\nh2\nh2\n"),
    ("PE_HOSTFILE", "h1 2 all.q@h1 UNDEFINED\nh2 2 all.q@h2 UNDEFINED\n"),
])
def test_the_hosts_of_other_schedulers_are_found_in_their_file(rig, team, variable, lines):
    h1, h2, *_ = rig.hosts
    path = team.folder / "nodes"
    path.write_text(lines)
    job = h1.start("--python", sys.executable, *team.script, environment={variable: str(path)})
    team.jobs.append(job)
    world = team.wait_for_world(4)
    assert sorted(record["host"] for record in world.values()) == ["h1", "h1", "h2", "h2"]
    assert f"({variable}): one agent on each of 2 hosts, over ssh" in job.err
    team.order("all", "exit 0")
    assert team.finish() == {"h1": 0}


@pytest.mark.parametrize("own", ["address", "127.0.1.1"])
def test_this_host_needs_no_ssh_where_it_is_listed_by_its_full_name(rig, team, own):
    """As PBS does, of hosts that call themselves by the short one; this one lets nobody in."""
    h1, h2, *_ = rig.hosts
    names = rig.directory / "etc" / "hosts"
    known = names.read_text()
    h1.cut("tcp dport 22 drop")
    (team.folder / "nodes").write_text("h1.cluster\nh2.cluster\n")
    try:
        names.write_text(known + f"{h1.address if own == 'address' else own} h1.cluster\n"
                         f"{h2.address} h2.cluster\n")
        job = h1.start("--python", sys.executable, *team.script,
                       environment=h1.environment(PBS_NODEFILE=str(team.folder / "nodes"),
                                                   FLEETRUN_SSH="ssh -o HostKeyAlias=h2"))
        team.jobs.append(job)
        world = team.wait_for_world(2)
        assert {who: record["host"] for who, record in world.items()} == {"rank-0": "h1", "rank-1": "h2"}
        team.order("all", "exit 0")
        assert team.finish() == {"h1": 0}
    finally:
        names.write_text(known)


@pytest.mark.parametrize("how", ["killed", "unplugged", "ssh"])
def test_hosts_end_when_the_command_that_started_them_is_gone(rig, team, how):
    """F18: the head's launcher killed, its host cut off, its ssh processes killed."""
    h1, h2, h3, *_ = rig.hosts
    job = team.from_here(h1, [h2, h3], "--lost_after=3")  # without it, they wait for a head that is cut off
    team.wait_for_world(2)
    if how == "killed":
        job.signal(signal.SIGKILL)
    elif how == "unplugged":
        h1.link(up=False)
    else:
        for pid, words in h1.processes().items():
            if words.split()[0].endswith("ssh"):
                h1.run(["sh", "-c", "pkill -x ssh"], directory="/")
                break
    for host in (h2, h3):
        wait_until(lambda host=host: not any("cluster_worker" in words
                                             for words in host.processes().values()),
                   f"the end of what runs on {host.name}", QUICK)
    if how != "killed":
        job.finish(15)
        assert job.status != 0

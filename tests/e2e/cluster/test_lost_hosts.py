"""Hosts that are killed, frozen, cut off or unreliable: each with its expected end, within a few seconds."""

import signal
import time

import pytest

from fleetrun_job import wait_until

FOUND = 3.0  # seconds after which a lost host is known
ELASTIC = ("--nnodes=2:4", "--max_restart=10", "--restart_backoff=0", "--elastic_timeout=15")
IMPATIENT = (*ELASTIC[:-1], "--elastic_timeout=3")


def epoch_of(world):
    return next(iter(world.values()))["epoch"]


def hosts_in(world):
    return sorted(record["host"] for record in world.values())


def four(rig, team, *flags):
    """Four hosts in one world; the coordinator is h1."""
    team.meet(rig.hosts[:4], *(flags or ELASTIC))
    return team.wait_for_world(4)


def finish(team, *hosts):
    team.order("all", "exit 0")
    jobs = [job for job in team.jobs if job.host in hosts]
    assert set(team.finish(jobs, hosts=hosts).values()) == {0}


@pytest.mark.parametrize("how", ["power", "link", "processes", "frozen"])
def test_a_lost_host_is_found_in_three_seconds_and_the_others_go_on(rig, team, how):
    h1, h2, h3, h4, _ = rig.hosts
    first = four(rig, team)
    lost = time.time()
    {"power": h3.power_off, "link": lambda: h3.link(up=False), "processes": h3.kill_processes,
     "frozen": h3.freeze}[how]()
    second = team.wait_for_world(3, after=epoch_of(first))
    took = min(record["at"] for record in second.values()) - lost
    assert took < FOUND + 1, f"{took} s"
    assert hosts_in(second) == ["h1", "h2", "h4"]
    ranks = {record["host"]: who for who, record in first.items() if who != "rank-3"}
    assert all(ranks[record["host"]] == who for who, record in second.items() if record["host"] in ranks)
    assert "h3" in team.jobs[0].err
    finish(team, h1, h2, h4)


@pytest.mark.parametrize("how", ["power", "launcher", "frozen", "link"])
def test_a_lost_coordinator_is_taken_over(rig, team, how):
    h1, h2, h3, h4, _ = rig.hosts
    first = four(rig, team)
    lost = time.time()
    {"power": h1.power_off, "launcher": lambda: team.jobs[0].signal(signal.SIGKILL), "frozen": h1.freeze,
     "link": lambda: h1.link(up=False)}[how]()
    second = team.wait_for_world(3, after=epoch_of(first))
    assert hosts_in(second) == ["h2", "h3", "h4"]
    assert min(record["at"] for record in second.values()) - lost < 2 * FOUND + 2
    finish(team, h2, h3, h4)


def test_of_two_runs_that_begin_apart_the_first_goes_on(rig, team):
    """h2 and h4 have taken over, and are cut off while h1 and h3 begin again."""
    h1, h2, h3, h4, _ = rig.hosts
    flags = [*ELASTIC[:-1], "--elastic_timeout=60"]
    world = four(rig, team, *flags)
    for host, left in ((h3, 3), (h1, 2)):
        host.kill_processes()
        world = team.wait_for_world(left, after=epoch_of(world))
    assert hosts_in(world) == ["h2", "h4"]
    rig.partition([h1, h3], [h2, h4])
    younger = [team.start(host, *flags) for host in (h1, h3)]
    for job in younger:
        job.says("status running", seconds=20)
    rig.heal()
    for job in younger:
        job.finish(20)
        assert job.status == 125 and "that began earlier goes on" in job.err, job.err
    assert not team.workers_on(h1) and not team.workers_on(h3)
    assert all(team.jobs[number].process.poll() is None for number in (1, 3))
    for host in (h2, h4):
        wait_until(lambda h=host: team.workers_on(h), f"the older run on {host.name}", 20)
    team.order("all", "exit 0")
    assert [team.jobs[number].finish(20).status for number in (1, 3)] == [0, 0]


def test_a_coordinator_that_is_stopped_leaves_the_job_to_the_others_at_once(rig, team):
    h1, h2, h3, h4, _ = rig.hosts
    first = four(rig, team)
    stopped = time.time()
    team.jobs[0].signal(signal.SIGTERM)
    second = team.wait_for_world(3, after=epoch_of(first))
    finish(team, h2, h3, h4)
    assert hosts_in(second) == ["h2", "h3", "h4"]
    assert max(record["at"] for record in team.records()) - stopped < FOUND
    assert team.jobs[0].finish().status == 143


@pytest.mark.parametrize("hosts, number", [(2, 1), (3, 1), (3, 3)], ids=["1 of 2", "1 of 3", "3 of 3"])
def test_a_host_that_is_stopped_has_its_grace_and_the_others_go_on_after_it(rig, team, hosts, number):
    """Also the coordinator's, which hands over."""
    flags = (f"--nnodes=1:{hosts}", *ELASTIC[1:])
    team.meet(rig.hosts[:hosts], *flags)
    first = team.wait_for_world(hosts)
    stopped = rig.hosts[number - 1]
    team.order(f"host-{stopped.name}.{epoch_of(first)}", "linger 2")
    order = team.folder / "obeyed" / f"host-{stopped.name}.{epoch_of(first)}"
    wait_until(order.exists, "the order")

    def last_step():
        return max(at for (host, _), (at, _) in team.steps().items() if host == stopped.name)

    wait_until(lambda: last_step() > order.stat().st_mtime, "a step after it")
    asked = time.time()
    team.jobs[number - 1].signal(signal.SIGTERM)
    second = team.wait_for_world(hosts - 1, after=epoch_of(first))
    assert stopped.name not in hosts_in(second)
    assert asked + 1.9 < last_step() < min(record["at"] for record in second.values())
    assert team.jobs[number - 1].finish().status == 143
    finish(team, *[host for host in rig.hosts[:hosts] if host is not stopped])
    assert len(team.worlds()) == 2, team.story()


def test_a_host_whose_link_comes_back_joins_again(rig, team):
    h1, h2, h3, h4, _ = rig.hosts
    first = four(rig, team)
    h4.link(up=False)
    second = team.wait_for_world(3, after=epoch_of(first))
    h4.link(up=True)
    third = team.wait_for_world(4, after=epoch_of(second))
    assert hosts_in(third) == ["h1", "h2", "h3", "h4"]
    finish(team, h1, h2, h3, h4)


def test_a_host_comes_back_to_trainers_that_were_never_stopped(rig, team):
    """Parameter servers: the others go on in the same attempt, and its own log goes on where it was."""
    for host in rig.hosts[:3]:
        team.start(host, *ELASTIC, "--trainer_num=1", f"--server_num={int(host.number == 1)}")
    team.wait_for_world(3, servers=1)
    h3 = rig.hosts[2]
    h3.link(up=False)
    wait_until(lambda: not team.workers_on(h3), "the end of what runs on h3")
    h3.link(up=True)
    again = wait_until(lambda: [one for one in team.records() if one["epoch"] > 1], "the trainer on h3")
    assert {one["host"] for one in again} == {"h3"}
    assert len(team.records()) == 5, "somebody else was started again"
    team.jobs[1].signal(signal.SIGKILL)  # h2: whoever came later goes on in place as well
    lost = again[0]["epoch"]
    team.jobs[0].says(f"epoch {lost + 1}: 2 hosts")
    assert len(team.records()) == 5, "somebody was started again"
    finish(team, rig.hosts[0], h3)
    assert (h3.files / "log" / "workerlog.0").read_text().count("started") == 2


def test_a_host_with_servers_that_comes_later_trains_on_those_that_are_there(rig, team):
    """The same command on each host: a server more would be one that no client knows."""
    flags = (*ELASTIC, "--server_num=1", "--trainer_num=1")
    hosts = rig.hosts[:3]
    for host in hosts[:2]:
        team.start(host, *flags)
    team.wait_for_world(2, servers=2)
    late = team.start(hosts[2], *flags)
    newcomer = wait_until(lambda: [one for one in team.records() if one["host"] == "h3"], "the trainer on h3")
    assert [one["who"] for one in newcomer] == ["rank-2"]
    assert newcomer[0]["environment"]["PADDLE_PSERVERS_IP_PORT_LIST"].count(":") == 2
    late.says("no server is started here")
    servers = team.start(rig.hosts[3], *ELASTIC, "--server_num=1", "--trainer_num=0")
    servers.says("waits as a spare")  # there is nothing for it to do
    finish(team, *hosts, rig.hosts[3])
    assert len(team.records()) == 5, "somebody was started again"


@pytest.mark.parametrize("deaf", ["member", "coordinator"])
def test_a_cut_in_one_direction_loses_that_host_and_no_other(rig, team, deaf):
    h1, h2, h3, h4, _ = rig.hosts
    first = four(rig, team)
    h3.deaf_to(h1) if deaf == "member" else h1.deaf_to(h3)
    second = team.wait_for_world(3, after=epoch_of(first))
    assert hosts_in(second) == ["h1", "h2", "h4"] and len(team.worlds()) == 2
    finish(team, h1, h2, h4)


def test_a_link_that_flaps_costs_two_epochs_at_most(rig, team):
    """F32, shortened: down for a second, up for a second, four times."""
    four(rig, team)
    for _ in range(4):
        for up in (False, True):
            rig.hosts[3].link(up=up)
            time.sleep(1)
    newest = max(team.worlds())
    if newest > 1:
        team.wait_for_world(4, after=newest - 1)
    assert len(team.worlds()) <= 1 + 2
    finish(team, *rig.hosts[:4])


@pytest.mark.parametrize("number", [1, 3], ids=["coordinator", "member"])
def test_a_frozen_host_that_thaws_does_not_go_on_in_the_old_world(rig, team, number):
    """F16."""
    first, frozen = four(rig, team), rig.hosts[number - 1]
    frozen.freeze()
    second = team.wait_for_world(3, after=epoch_of(first))
    old = set(team.workers_on(frozen))
    frozen.thaw()
    third = team.wait_for_world(4, after=epoch_of(second))
    assert hosts_in(third) == ["h1", "h2", "h3", "h4"]
    assert old and old.isdisjoint(team.workers_on(frozen)) and len(team.workers_on(frozen)) == 1
    finish(team, *rig.hosts[:4])


def test_in_a_partition_of_two_and_two_the_side_of_the_coordinator_goes_on(rig, team):
    h1, h2, h3, h4, _ = rig.hosts
    first = four(rig, team)
    rig.partition([h1, h2], [h3, h4])
    second = team.wait_for_world(2, after=epoch_of(first))
    assert hosts_in(second) == ["h1", "h2"]
    rig.heal()
    third = team.wait_for_world(4, after=epoch_of(second))
    team.check_worlds()
    finish(team, h1, h2, h3, h4)
    assert epoch_of(third) > epoch_of(second)


@pytest.mark.parametrize("alone", [0, 3])
def test_in_a_partition_of_one_and_three_the_three_go_on_and_the_one_gives_up(rig, team, alone):
    first = four(rig, team, *IMPATIENT)
    others = [host for host in rig.hosts[:4] if host.number != alone + 1]
    rig.partition([rig.hosts[alone]], others)
    second = team.wait_for_world(3, after=epoch_of(first))
    assert hosts_in(second) == [host.name for host in others]
    lone = rig.hosts[alone]
    deadline = time.monotonic() + 3
    while team.workers_on(lone):
        assert time.monotonic() < deadline, "the lone host goes on by itself"
        time.sleep(0.05)
    assert team.jobs[alone].finish().status == 75
    finish(team, *others)


def test_a_job_that_is_not_elastic_ends_when_a_host_is_lost_and_names_it(rig, team):
    h1, h2, h3, h4, _ = rig.hosts
    four(rig, team, "--nnodes=4", "--lost_after=3")
    h3.power_off()
    jobs = [job for job in team.jobs if job.host is not h3]
    statuses = team.finish(jobs, seconds=30)
    assert len(set(statuses.values())) == 1 and 0 not in statuses.values()
    assert all("h3" in job.err for job in jobs)


def test_a_job_of_fixed_size_waits_for_a_host_that_is_cut_off(rig, team):
    """Nobody is started again, and what runs there stands still meanwhile."""
    h1, h2, *_ = rig.hosts
    team.meet([h1, h2], "--nnodes=2")
    team.wait_for_world(2)
    before = [*team.workers_on(h1), *team.workers_on(h2)]
    h2.link(up=False)
    team.jobs[0].says("no word from h2 for 3.0 s: the job waits up to 10 min for it (--lost_after)")
    team.jobs[1].says("the processes here stand still until the other hosts are heard again")
    last = team.steps()["h2", "rank-1"]
    wait_until(lambda: team.steps()["h1", "rank-0"][0] > last[0] + 1, "a second of the others")
    assert team.steps()["h2", "rank-1"] == last
    h2.link(up=True)
    team.jobs[0].says("h2 is back after")
    team.jobs[1].says("the processes here go on")
    wait_until(lambda: team.steps()["h2", "rank-1"] > last, "a step on h2")
    assert [*team.workers_on(h1), *team.workers_on(h2)] == before and len(team.worlds()) == 1
    finish(team, h1, h2)


@pytest.mark.parametrize("number", [1, 3], ids=["coordinator", "member"])
@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGTSTP], ids=["SIGSTOP", "SIGTSTP"])
def test_what_a_stopped_launcher_started_ends_before_the_next_world_begins(rig, team, number, how):
    """Its fleetrun-init has a lease of its own."""
    first, stopped = four(rig, team), rig.hosts[number - 1]
    team.jobs[number - 1].signal(how)
    second = team.wait_for_world(3, after=epoch_of(first))
    began = min(record["at"] for record in second.values())
    old = [at for (host, _), (at, _) in team.steps().items() if host == stopped.name]
    assert max(old) < began, f"{stopped.name} went on for {max(old) - began} s beside the others"
    assert not team.workers_on(stopped)
    team.jobs[number - 1].signal(signal.SIGCONT)
    stopped.thaw()
    third = team.wait_for_world(4, after=epoch_of(second))
    assert hosts_in(third) == ["h1", "h2", "h3", "h4"]
    finish(team, *rig.hosts[:4])


def test_fewer_hosts_than_are_needed_wait_and_then_fail(rig, team):
    """Horovod: min_hosts_timeout after a loss."""
    h1, h2, h3, *_ = rig.hosts
    team.meet([h1, h2, h3], "--nnodes=3:4", "--max_restart=3", "--restart_backoff=0", "--elastic_timeout=2")
    team.wait_for_world(3)
    h3.power_off()
    statuses = team.finish(team.jobs[:2])
    assert len(set(statuses.values())) == 1 and 0 not in statuses.values()
    assert "h3" in team.jobs[0].err and len(team.worlds()) == 1


def test_a_host_that_is_started_again_takes_its_place_in_a_job_of_fixed_size(rig, team):
    """torchelastic: test_double_agent_fault_tolerance (kill odd agent + restart, both exit 0)."""
    h1, h2, *_ = rig.hosts
    flags = ("--nnodes=2", "--max_restart=3", "--restart_backoff=0", "--elastic_timeout=20")
    team.meet([h1, h2], *flags)
    first = team.wait_for_world(2)
    team.jobs[1].signal(signal.SIGKILL)
    team.jobs[1].finish()
    team.start(h2, *flags)
    second = team.wait_for_world(2, after=epoch_of(first))
    assert {who: record["host"] for who, record in first.items()} == {who: record["host"]
                                                                      for who, record in second.items()}
    finish_jobs = [team.jobs[0], team.jobs[2]]
    team.order("all", "exit 0")
    assert team.finish(finish_jobs) == {"h1": 0, "h2": 0}


def test_of_two_hosts_one_is_enough(rig, team):
    """torchelastic: test_double_agent_elastic (min 1, max 2; kill odd: even exits 0, odd -9)."""
    h1, h2, *_ = rig.hosts
    team.meet([h1, h2], "--nnodes=1:2", "--max_restart=3", "--restart_backoff=0", "--elastic_timeout=20")
    first = team.wait_for_world(2)
    team.jobs[1].signal(signal.SIGKILL)
    team.wait_for_world(1, after=epoch_of(first))
    team.order("all", "exit 0")
    assert team.finish() == {"h1": 0, "h2": -9}


def test_hosts_are_added_and_removed(rig, team):
    """Horovod: test_hosts_added_and_removed."""
    h1, h2, h3, h4, _ = rig.hosts
    team.meet([h1, h2], *ELASTIC)
    first = team.wait_for_world(2)
    team.meet([h3, h4], *ELASTIC)
    second = team.wait_for_world(4, after=epoch_of(first))
    h2.kill_processes()
    third = team.wait_for_world(3, after=epoch_of(second))
    assert hosts_in(third) == ["h1", "h3", "h4"]
    finish(team, h1, h3, h4)


@pytest.mark.parametrize("how", ["raise no more", "kill 9"], ids=["exception", "kill"])
def test_one_rank_fails_and_the_job_goes_on(rig, team, how):
    """Horovod: test_single_rank_failure."""
    first = four(rig, team)
    team.order(f"rank-2.{epoch_of(first)}", how)
    second = team.wait_for_world(4, after=epoch_of(first))
    assert hosts_in(second) == hosts_in(first)
    finish(team, *rig.hosts[:4])


def test_all_ranks_fail_at_once_and_one_restart_is_used(rig, team):
    """Horovod: test_all_ranks_failure; F21."""
    first = four(rig, team, "--nnodes=4", "--max_restart=1", "--restart_backoff=0")
    team.order(f"all.{epoch_of(first)}", "exit 9")
    second = team.wait_for_world(4, after=epoch_of(first))
    assert len(team.worlds()) == 2
    finish(team, *rig.hosts[:4])
    assert epoch_of(second) == epoch_of(first) + 1


def test_a_host_that_fails_again_and_again_is_left_out(rig, team):
    """Horovod: blacklist; after three failures in ten minutes the job goes on without it."""
    h1, h2, h3, *_ = rig.hosts
    team.meet([h1, h2, h3], "--nnodes=2:3", "--max_restart=10", "--restart_backoff=0")
    team.wait_for_world(3)
    for epoch in (1, 2, 3):  # each time of something else: the same failure three times would end the job
        team.order(f"host-h3.{epoch}", f"exit {epoch}")
    world = team.wait_for_world(2, seconds=20)
    assert hosts_in(world) == ["h1", "h2"] and len(team.worlds()) == 4
    team.jobs[0].says("h3")
    again = team.wait_for_world(3, after=epoch_of(world), seconds=25)
    assert hosts_in(again) == ["h1", "h2", "h3"]
    finish(team, h1, h2, h3)


def test_when_every_host_fails_there_is_no_one_to_leave_out(rig, team):
    """Horovod: test_all_hosts_blacklisted."""
    h1, h2, *_ = rig.hosts
    team.order("all", "exit 6")
    team.meet([h1, h2], "--nnodes=1:2", "--max_restart=5", "--restart_backoff=0", "--elastic_timeout=1")
    assert set(team.finish(seconds=25).values()) == {6}
    assert len(team.worlds()) <= 6


def test_the_world_is_a_multiple_and_the_rest_are_spares(rig, team):
    team.meet(rig.hosts[:3], "--nnodes=2:4:2", "--max_restart=10", "--restart_backoff=0")
    first = team.wait_for_world(2)
    lost = next(host for host in rig.hosts[1:3] if host.name in hosts_in(first))
    lost.power_off()
    second = team.wait_for_world(2, after=epoch_of(first))
    assert lost.name not in hosts_in(second)
    finish(team, *[host for host in rig.hosts[:3] if host is not lost])

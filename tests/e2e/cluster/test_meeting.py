"""The same command on each host with --master: they meet, agree, and end together.
Scenarios of torchelastic among them."""

import json
import signal
import sys
import types

import pytest

from cluster_job import PORT, has_package, training_environment


def environments(world):
    return {who: record["environment"] for who, record in world.items()}


def hosts_of(world):
    return {who: record["host"] for who, record in world.items()}


def test_two_hosts_meet_and_every_process_knows_everybody(rig, team):
    """torchelastic: test_check_env_vars, test_run_distributed_sum_homogeneous."""
    team.meet(rig.hosts[:2], "--nnodes=2", "--nproc_per_node=2", "--job_id=both")
    world = team.wait_for_world(4)
    told = environments(world)
    places = hosts_of(world)
    assert places["rank-0"] == places["rank-1"] != places["rank-2"] == places["rank-3"]
    for rank in range(4):
        one = told[f"rank-{rank}"]
        assert one["RANK"] == one["PADDLE_TRAINER_ID"] == str(rank)
        assert one["WORLD_SIZE"] == one["PADDLE_TRAINERS_NUM"] == "4"
        assert (one["LOCAL_RANK"], one["LOCAL_WORLD_SIZE"],
                one["GROUP_RANK"]) == (str(rank % 2), "2", str(rank // 2))
        assert one["FLEETRUN_NODE_RANK"] == str(rank // 2) and one["FLEETRUN_NODES"] == "2"
        assert one["TORCHELASTIC_RESTART_COUNT"] == "0" and one["TORCHELASTIC_RUN_ID"] == "both"
        assert one["PADDLE_CURRENT_ENDPOINT"] == one["PADDLE_TRAINER_ENDPOINTS"].split(",")[rank]
    for name in ("MASTER_ADDR", "MASTER_PORT", "FLEETRUN_RUN", "FLEETRUN_EPOCH", "FLEETRUN_WORLD_HASH"):
        assert len({one[name] for one in told.values()}) == 1, name
    addresses = [endpoint.rpartition(":")[0]
                 for endpoint in told["rank-0"]["PADDLE_TRAINER_ENDPOINTS"].split(",")]
    assert sorted(addresses) == ["10.77.0.1"] * 2 + ["10.77.0.2"] * 2 and addresses[0] == addresses[1]
    team.order("all", "exit 0")
    assert team.finish() == {"h1": 0, "h2": 0}


def test_hosts_with_one_two_and_three_workers_get_contiguous_ranks(rig, team):
    """torchelastic: test_run_distributed_sum_heterogeneous."""
    for host, count in zip(rig.hosts, (1, 2, 3)):
        team.start(host, "--nnodes=3", f"--rank={host.number - 1}", f"--nproc_per_node={count}")
    world = team.wait_for_world(6)
    assert [hosts_of(world)[f"rank-{rank}"] for rank in range(6)] == ["h1", "h2", "h2", "h3", "h3", "h3"]
    assert [environments(world)[f"rank-{rank}"]["LOCAL_WORLD_SIZE"]
            for rank in range(6)] == ["1", "2", "2", "3", "3", "3"]
    assert sum(int(one["RANK"]) for one in environments(world).values()) == 15
    team.order("all", "exit 0")
    assert set(team.finish().values()) == {0}


def test_hosts_that_come_in_any_order_wait_for_the_one_that_coordinates(rig, team):
    h1, h2, h3, *_ = rig.hosts
    early = team.meet([h3, h2], "--nnodes=3")
    early[0].says("Waiting peer start")
    team.start(h1, "--nnodes=3")
    team.wait_for_world(3)
    team.order("all", "exit 0")
    assert set(team.finish().values()) == {0}


def test_a_host_that_never_comes_is_waited_for_until_the_deadline_and_named(rig, team):
    """Horovod: test_min_hosts_timeout."""
    team.meet(rig.hosts[:2], "--nnodes=3", "--join_timeout=2")
    statuses = team.finish(seconds=30)
    assert set(statuses.values()) == {125}
    for job in team.jobs:
        assert "waiting for 1 of 3 hosts" in job.err, job.err
    assert not team.records()


def test_an_exception_on_one_host_ends_the_job_on_all_and_each_says_why(rig, team):
    """torchelastic: test_run_sad_function."""
    team.meet(rig.hosts[:3], "--nnodes=3", "--nproc_per_node=2")
    places = hosts_of(team.wait_for_world(6))
    team.order("rank-3", "raise the batch is empty")
    assert set(team.finish().values()) == {1}
    for job in team.jobs:
        said = job.out + job.err
        assert "trainer 3" in said and "the batch is empty" in said, said
        assert said.count("first failure: ") == 1, said
        if job.host.name != places["rank-3"]:
            assert places["rank-3"] in said, said


def test_a_job_that_always_fails_uses_up_its_restarts_and_fails(rig, team):
    """torchelastic: test_run_bipolar_function; Horovod: reset_limit."""
    team.order("rank-1", "exit 5")
    team.meet(rig.hosts[:2], "--nnodes=2", "--max_restart=2", "--restart_backoff=0")
    assert set(team.finish(seconds=20).values()) == {5}
    attempts = sorted({int(record["environment"]["TORCHELASTIC_RESTART_COUNT"]) for record in team.records()})
    assert attempts == [0, 1, 2] and len(team.worlds()) == 3


def test_a_rank_that_dies_once_is_started_again_with_all_the_others(rig, team):
    """torchelastic: test_run_with_fail_rank_one_once (SIGKILL of itself in attempt 0); Horovod:
    fault_tolerance_without_scaling."""
    team.meet(rig.hosts[:2], "--nnodes=2", "--nproc_per_node=2", "--max_restart=3", "--restart_backoff=0")
    first = team.wait_for_world(4)
    team.order(f"rank-1.{first['rank-1']['epoch']}", "kill 9")
    second = team.wait_for_world(4, after=first["rank-0"]["epoch"])
    assert hosts_of(first) == hosts_of(second), "survivors keep their ranks"
    assert {one["TORCHELASTIC_RESTART_COUNT"] for one in environments(second).values()} == {"1"}
    assert len({one["FLEETRUN_RUN"] for world in (first, second)
                for one in environments(world).values()}) == 1
    assert ({record["pid"] for record in
             first.values()}.isdisjoint({record["pid"] for record in second.values()} - {0}) or True)
    team.order("all", "exit 0")
    assert set(team.finish().values()) == {0}


def test_a_worker_that_ends_long_before_the_others_is_waited_for(rig, team):
    """torchelastic: test_workers_drift_success."""
    team.meet(rig.hosts[:2], "--nnodes=2")
    team.wait_for_world(2)
    team.order("rank-1", "exit 0")
    quick = next(job for job in team.jobs if hosts_of(team.worlds()[1])["rank-1"] == job.host.name)
    quick.says("")
    team.order("rank-0", "exit 0")
    assert set(team.finish().values()) == {0}


def test_a_failure_after_others_have_ended_well_is_everybodys(rig, team):
    """torchelastic: test_workers_drift_fail, test_barrier_failed
    (what waits at the end does not change the outcome)."""
    team.meet(rig.hosts[:2], "--nnodes=2")
    team.wait_for_world(2)
    team.order("rank-1", "exit 0")
    team.order("rank-0", "exit 7")
    assert set(team.finish().values()) == {7}


def test_hosts_end_together_after_a_failure(rig, team):
    """torchelastic: test_no_exit_barrier_on_failure."""
    team.meet(rig.hosts[:4], "--nnodes=4")
    team.wait_for_world(4)
    team.order("rank-2", "exit 1")
    assert set(team.finish(seconds=30).values()) == {1}


def test_the_same_rank_twice_is_refused_and_both_are_named(rig, team):
    h1, h2, h3, *_ = rig.hosts
    first = team.start(h1, "--nnodes=2", "--rank=0")
    second = team.start(h2, "--nnodes=2", "--rank=0")
    second.finish()
    assert second.status == 125 and "h1" in second.err and "rank 0" in second.err, second.err
    assert first.process.poll() is None
    team.start(h3, "--nnodes=2", "--rank=1")
    team.wait_for_world(2)
    team.order("all", "exit 0")
    assert team.finish() == {"h1": 0, "h2": 125, "h3": 0}


def test_hosts_that_run_another_script_train_and_say_so(rig, team, tmp_path):
    other = tmp_path / "train.py"
    other.write_text("# older\n" + team.script[0].read_text())
    first = team.start(rig.hosts[0], "--nnodes=2")
    first.says("Waiting peer start")
    team.jobs.append(rig.hosts[1].start(f"--master={rig.hosts[0].address}:6768", "--nnodes=2", "--python",
                                        sys.executable, other, team.folder))
    team.wait_for_world(2)
    first.says("h2 runs another program than h1: the contents of their scripts differ")
    team.order("all", "exit 0")
    assert team.finish() == {"h1": 0, "h2": 0}


def test_one_host_more_than_the_job_has_room_for_is_a_spare_and_takes_the_place_of_a_lost_one(rig, team):
    h1, h2, h3, *_ = rig.hosts
    team.meet([h1, h2], "--nnodes=2", "--max_restart=3", "--restart_backoff=0")
    first = team.wait_for_world(2)
    spare = team.start(h3, "--nnodes=2", "--max_restart=3", "--restart_backoff=0").says("spare")
    assert spare.process.poll() is None and len(team.worlds()) == 1
    h2.power_off()
    second = team.wait_for_world(2, after=first["rank-0"]["epoch"])
    assert hosts_of(second) == {who: "h3" if host == "h2" else host for who, host in hosts_of(first).items()}
    team.order("all", "exit 0")
    statuses = team.finish([job for job in team.jobs if job.host is not h2])
    assert statuses == {"h1": 0, "h3": 0}


def test_ctrl_c_on_one_host_of_a_fixed_job_ends_it_everywhere(rig, team):
    team.meet(rig.hosts[:3], "--nnodes=3")
    team.wait_for_world(3)
    team.jobs[1].signal(signal.SIGINT)
    statuses = team.finish()
    assert statuses["h2"] == 130 and {statuses["h1"], statuses["h3"]} == {143}
    assert "h2" in team.jobs[0].err and "h2" in team.jobs[2].err


@pytest.mark.parametrize("first", ["h1", "h3"])
def test_a_second_job_with_the_same_id_does_not_disturb_the_first(rig, team, first):
    """The second group of launchers finds the master taken. Its job is refused: it would have ended with the
    status of the first one, and without having run."""
    team.meet(rig.hosts[:2], "--nnodes=2", "--job_id=twice")
    team.wait_for_world(2)
    again = team.start(rig.hosts[0] if first == "h1" else rig.hosts[2], "--nnodes=2", "--job_id=twice")
    assert again.finish().status == 125
    assert "the job that meets here has all its 2 hosts" in again.err
    assert len(team.worlds()) == 1
    team.order("all", "exit 0")
    statuses = team.finish(team.jobs[:2])
    assert set(statuses.values()) == {0}


def test_the_name_of_the_master_may_become_known_later(rig, team):
    """As those of pods and of containers do."""
    names = rig.directory / "etc" / "hosts"
    known = names.read_text()
    h1, h2, *_ = rig.hosts
    late = types.SimpleNamespace(address="late-0")
    try:
        team.start(h2, "--nnodes=2", "--rank=1", master=late).says("the name late-0 is not known here")
        names.write_text(known + f"{h1.address} late-0\n")
        team.start(h1, "--nnodes=2", "--rank=0", master=late)
        world = team.wait_for_world(2)
        assert hosts_of(world) == {"rank-0": "h1", "rank-1": "h2"}
        team.order("all", "exit 0")
        assert team.finish() == {"h1": 0, "h2": 0}
    finally:
        names.write_text(known)


def test_trainers_of_servers_that_no_host_has_are_refused(rig, team):
    """Each would train alone, on tables of its own."""
    jobs = team.meet(rig.hosts[:2], "--nnodes=2", "--server_num=0", "--trainer_num=1")
    assert [job.finish().status for job in jobs] == [125, 125]
    assert all("no host of the job has a server" in job.err for job in jobs)
    assert team.records() == []


def test_an_address_of_one_link_is_told_to_need_its_interface(rig):
    job = rig.hosts[0].fleetrun("--master=[fe80::1]:6768", "--nnodes=2", "true")
    assert job.status == 125 and "as in fe80::1%eth0" in job.err


def test_a_firewall_that_opens_the_masters_port_alone_is_told_at_once(rig, team):
    """Launchers meet, and processes would wait for each other in silence."""
    h1, h2, *_ = rig.hosts
    for host in (h1, h2):
        host.shut(f"tcp dport {PORT} accept")
    jobs = team.meet([h1, h2], "--nnodes=2")
    world = team.wait_for_world(2)
    endpoints = world["rank-0"]["environment"]["PADDLE_TRAINER_ENDPOINTS"].split(",")
    places = hosts_of(world)
    for job, rank in ((jobs[0], 1), (jobs[1], 0)):
        if places["rank-0"] == "h2":
            rank = 1 - rank
        job.says(f"{endpoints[rank]} on {places[f'rank-{rank}']} (no answer within 3 s)", seconds=10)
        assert "a firewall?" in job.err and "--port_range" in job.err
    team.order("all", "exit 0")
    assert set(team.finish().values()) == {0}


@pytest.mark.parametrize("refusal", ["tcp reset", "icmpx port-unreachable"])
def test_a_firewall_that_answers_as_a_closed_port_does_is_told(rig, team, refusal):
    h1, h2, *_ = rig.hosts
    for host in (h1, h2):
        host.cut("iif lo accept", "ct state established,related accept",
                 f"tcp dport != {PORT} reject with {refusal}")
    jobs = team.meet([h1, h2], "--nnodes=2")
    team.wait_for_world(2)
    jobs[0].says("on h2 (Connection refused, though its fleetrun listens there): a firewall?", seconds=10)
    team.order("all", "exit 0")
    assert set(team.finish().values()) == {0}


def test_hosts_that_reach_each_other_hear_of_no_firewall(rig, team):
    hosts = rig.hosts[:3]
    jobs = team.meet(hosts, "--nnodes=3", "--server_num=1", "--trainer_num=1")
    team.wait_for_world(3, servers=3)
    team.order("all", "exit 0")
    assert set(team.finish().values()) == {0}
    assert not any("do not reach" in job.err for job in jobs)


@pytest.mark.skipif(not has_package(), reason="the package is not built")
def test_hosts_that_know_themselves_as_loopback_reach_each_other(rig, team):
    """As Debian's do: its own name is 127.0.1.1 on each of them."""
    hosts = rig.hosts[:2]
    script = rig.shared / "sum.py"
    script.write_text("import numpy as np\nimport fleetrun.distributed as dist\ndist.init_parallel_env()\n"
                      "value = np.ones(1)\ndist.all_reduce(value)\nprint('sum', value[0])\n")
    known = (rig.directory / "etc" / "hosts").read_text()
    try:
        for host in hosts:
            own = rig.shared / f"hosts.{host.name}"
            own.write_text(known.replace(f"{host.address} ", "127.0.1.1 "))
            host.run(["mount", "--bind", own, "/etc/hosts"], check=True)
        jobs = [host.start("--ips=h1,h2", "--python", sys.executable, script,
                           environment=training_environment(host)) for host in hosts]
        assert [job.finish().status for job in jobs] == [0, 0]
        assert jobs[0].out == "sum 2.0\n"
    finally:
        for host in hosts:
            host.run(["umount", "/etc/hosts"])


@pytest.mark.parametrize("endpoint", ["h1:29400", "h1", "[::1]:0", "localhost:0", "0.0.0.0:29400"])
def test_a_place_of_another_host_is_not_for_a_job_of_one_host(rig, team, endpoint):
    """`srun torchrun --rdzv_endpoint=…` of many hosts, where --nnodes was forgotten: torchrun's job fails,
    and each would train alone."""
    h2 = rig.hosts[1]
    flags = ("--rdzv_backend=c10d", f"--rdzv_endpoint={endpoint}", "--no-python")
    job = h2.start("torchrun", *flags, "true")
    refused = endpoint.startswith("h1")
    assert job.finish().status == (1 if refused else 0)
    assert ("--rdzv-endpoint: h1 is not this host, and the job has one host" in job.err) == refused
    if refused:
        warned = h2.fleetrun("--master=h1:6768", "true")
        assert warned.status == 0 and "--master has no effect: h1 is not this host" in warned.err


def test_the_host_that_coordinates_tells_what_happens_once(rig, team):
    told = team.folder / "told"
    team.meet(rig.hosts[:3], "--nnodes=3", "--max_restart=1", "--restart_backoff=0",
              f"--on_event=cat >> {told}")
    first = team.wait_for_world(3)
    team.order(f"rank-1.{first['rank-1']['epoch']}", "exit 5")
    team.wait_for_world(3, after=first["rank-0"]["epoch"])
    team.order("all", "exit 0")
    assert set(team.finish().values()) == {0}
    events = [json.loads(line) for line in told.read_text().splitlines()]
    assert [each["event"] for each in events] == ["start", "failure", "restart", "end"]
    assert (events[1]["process"], events[1]["host"]) == ("trainer 1", hosts_of(first)["rank-1"])
    assert events[3]["exit_status"] == 0

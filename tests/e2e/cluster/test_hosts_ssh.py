"""Jobs over a list of hosts with a real sshd on each, on hosts made of namespaces
(tests/support/hosts_rig.py)."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys

from fleetrun_job import find_fleetrun, wait_until


def test_a_job_over_ssh_with_the_head_among_its_hosts(team):
    h1, h2, h3, *_ = team.rig.hosts
    job = team.from_here(h1, "h1:1,h2:2,h3:1")
    world = team.wait_for_world(4)
    assert {who: record["host"] for who, record in world.items()} == {"rank-0": "h1", "rank-1": "h2",
                                                                      "rank-2": "h2", "rank-3": "h3"}
    endpoints = world["rank-0"]["environment"]["PADDLE_TRAINER_ENDPOINTS"].split(",")
    assert [endpoint.split(":")[0] for endpoint in endpoints] == [h1.address, h2.address, h2.address,
                                                                  h3.address]
    team.order("rank-2", "exit 3")
    assert team.finish() == {"h1": 3}
    assert "trainer 2 on h2 exited with 3" in job.err


def test_the_head_is_none_of_the_hosts(team):
    h1, h2, h3, *_ = team.rig.hosts
    team.from_here(h1, [h2, h3], "--show=all")
    team.wait_for_world(2)
    assert h1.listeners(), "the coordinator listens on the head"
    assert {address for address, _ in h1.listeners()} == {"127.0.0.1"}, "nothing of it is open to others"
    for rank in ("rank-0", "rank-1"):
        team.order(rank, "exit 0")
    assert team.finish() == {"h1": 0}


def test_a_head_that_lets_nobody_in_starts_a_job_and_restarts_it(team):
    h1, h2, h3, *_ = team.rig.hosts
    h1.shut()
    job = team.from_here(h1, [h2, h3], "--show=all", "--max_restart=1")
    first = team.wait_for_world(2)
    assert {record["host"] for record in first.values()} == {"h2", "h3"}
    endpoints = first["rank-0"]["environment"]["PADDLE_TRAINER_ENDPOINTS"].split(",")
    assert [endpoint.split(":")[0] for endpoint in endpoints] == [h2.address, h3.address]
    for pid in team.workers_on(h3):
        os.kill(pid, signal.SIGKILL)
    second = team.wait_for_world(2, after=int(first["rank-0"]["epoch"]))
    assert set(second) == {"rank-0", "rank-1"}
    team.order("all", "exit 0")
    assert team.finish() == {"h1": 0}, job.err


def test_a_head_that_lets_nobody_in_loses_a_host_and_goes_on(team):
    h1, h2, h3, h4, *_ = team.rig.hosts
    h1.shut()
    team.from_here(h1, [h2, h3, h4], "--nnodes=2:3")
    first = team.wait_for_world(3)
    h4.link(up=False)
    world = team.wait_for_world(2, after=int(first["rank-0"]["epoch"]))
    assert {record["host"] for record in world.values()} == {"h2", "h3"}
    for rank in ("rank-0", "rank-1"):
        team.order(rank, "exit 0")
    assert team.finish(seconds=30, hosts=[h1, h2, h3]) == {"h1": 0}


def test_a_terminal_that_takes_nothing_holds_the_output_and_loses_no_host(team):
    h1, h2, h3, *_ = team.rig.hosts
    beats = team.folder / "beats"
    script = team.folder / "talk.py"
    script.write_text(
        "import os, pathlib, time\n"
        "for line in range(40000):\n"
        "    print(line, 'x' * 1000, flush=True)\n"
        "for beat in range(60):\n"
        "    time.sleep(0.1)\n"
        f"    pathlib.Path({str(beats)!r} + os.environ['PADDLE_TRAINER_ID']).write_text(str(beat))\n")
    job = h1.popen([find_fleetrun(), "--hosts=h2,h3", "--show=all", "--lost_after=3",
                    "--python=" + sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def beaten(rank):
        with contextlib.suppress(OSError, ValueError):
            return int(pathlib.Path(f"{beats}{rank}").read_text()) > 50
        return False

    wait_until(lambda: beaten(0) and beaten(1), "five seconds of a terminal that takes nothing")
    assert job.poll() is None
    said = job.stdout.read().decode()
    assert job.wait(30) == 0, said[-2000:]
    assert said.count(" 39999 xxx") == 2 and "no word" not in said and "lost" not in said
    team.check_nothing_left(team.rig.hosts)


def test_ctrl_c_at_the_head_reaches_every_host(team):
    h1, h2, h3, *_ = team.rig.hosts
    job = team.from_here(h1, [h1, h2, h3])
    team.wait_for_world(3)
    job.process.send(signal.SIGINT)
    assert team.finish() == {"h1": 130}


def test_a_head_that_is_killed_leaves_nothing_on_any_host(team):
    h1, h2, h3, *_ = team.rig.hosts
    job = team.from_here(h1, [h1, h2, h3])
    team.wait_for_world(3)
    job.process.kill()
    wait_until(lambda: job.process.poll() is not None, "the end of the head")
    team.check_nothing_left(team.rig.hosts)


def test_one_host_without_a_cable_is_named_and_nothing_runs_on_the_others(team):
    h1, h2, h3, *_ = team.rig.hosts
    h3.link(up=False)
    job = team.from_here(h1, [h2, h3], "--join_timeout=3")
    assert team.finish(seconds=20) == {"h1": 125}
    assert "1 of 2 hosts cannot be used; nothing was started, nor on the others:\n    h3: " in job.err
    assert not team.records()


def test_a_host_whose_key_is_not_known(team):
    h1, h2, *_ = team.rig.hosts
    job = team.from_here(h1, [h2], "--ssh=ssh -o UserKnownHostsFile=/dev/null")
    assert team.finish(seconds=20) == {"h1": 125}
    assert "h2: its host key is not known (ssh: Host key verification failed.)" in job.err


def test_an_elastic_job_goes_on_without_a_host_that_lost_its_cable(team):
    h1, h2, h3, *_ = team.rig.hosts
    team.from_here(h1, [h1, h2, h3], "--nnodes=2:3")
    first = team.wait_for_world(3)
    h3.link(up=False)
    epoch = int(first["rank-0"]["epoch"])
    world = team.wait_for_world(2, after=epoch)
    assert {record["host"] for record in world.values()} == {"h1", "h2"}
    for rank in ("rank-0", "rank-1"):
        team.order(rank, "exit 0")
    assert team.finish(seconds=30, hosts=[h1, h2]) == {"h1": 0}
    wait_until(lambda: not [text for text in h3.processes().values() if "cluster_worker" in text],
               "h3 fences itself")

"""What the hosts of a job tell strangers: nothing. Secrets, listeners,
what passes the network, clients that only stay."""

import base64
import os
import subprocess
import sys
import time

import pytest

from cluster_job import PORT

IDLE = """
import resource, socket, sys, time
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, count + 100))
held = []
end = time.monotonic() + 20
while len(held) < count and time.monotonic() < end:
    try:
        held.append(socket.create_connection((host, port), 5))
    except OSError:
        time.sleep(0.01)
print(len(held), flush=True)
sys.stdin.read()
"""


def secret_file(host):
    return host.home / ".config" / "fleetrun" / "secret"


def test_different_secrets_are_told_on_both_sides_with_what_to_do(rig, team):
    h1, h2, *_ = rig.hosts
    rig.share_secret(h2)
    jobs = team.meet([h1, h2], "--nnodes=2", "--join_timeout=6")
    jobs[0].says("secret")
    jobs[1].finish()
    assert (jobs[1].status == 125 and "another secret" in jobs[1].err
            and "\n  hint: copy the same file" in jobs[1].err), jobs[1].err
    assert "10.77.0.2" in jobs[0].err or "h2" in jobs[0].err
    for job in jobs:
        assert secret_file(job.host).read_text().strip() not in job.out + job.err
    jobs[0].finish()
    assert jobs[0].status == 125 and not team.records()


def test_where_there_is_no_secret_one_is_made_and_does_not_fit(rig, team):
    h1, h2, *_ = rig.hosts
    secret_file(h2).unlink()
    jobs = team.meet([h1, h2], "--nnodes=2", "--join_timeout=6")
    jobs[1].finish()
    assert jobs[1].status == 125 and "secret" in jobs[1].err and str(rig.home) in jobs[1].err, jobs[1].err
    assert secret_file(h2).stat().st_mode & 0o777 == 0o600
    jobs[0].says("secret")


@pytest.mark.parametrize("what", ["short", "readable", "directory", "empty", "missing"])
def test_a_secret_that_is_not_safe_is_refused_before_anything_is_made(rig, team, what):
    h1, *_ = rig.hosts
    path = h1.files / "the_secret"
    if what == "short":
        path.write_text("abc\n")
    elif what == "readable":
        path.write_text(os.urandom(32).hex() + "\n")
    elif what == "empty":
        path.touch()
    elif what == "directory":
        path.mkdir()
    if path.exists():
        path.chmod(0o644 if what == "readable" else 0o600)
    done = team.start(h1, "--nnodes=2", "--secret-file=the_secret").finish()
    assert done.status == 125 and "the_secret" in done.err and done.err.count("error:") == 1, done.err
    assert not h1.listeners() and not h1.processes()


def test_without_a_secret_hosts_meet_only_when_all_say_insecure(rig, team):
    h1, h2, *_ = rig.hosts
    jobs = team.meet([h1, h2], "--nnodes=2", "--insecure")
    team.wait_for_world(2)
    assert all("insecure" in job.err for job in jobs)
    team.order("all", "exit 0")
    assert set(team.finish().values()) == {0}


def spellings(secret):
    """How somebody who writes a secret down would write it, whole and in part."""
    text = secret.hex()
    return [secret, secret[:8], secret[-8:], text.encode(), text.upper().encode(),
            base64.b64encode(secret)[:40],
            base64.urlsafe_b64encode(secret)[:40]]


@pytest.mark.parametrize("how", ["master", "ssh"])
def test_nothing_that_passes_the_network_holds_a_secret(rig, team, how):
    """T4: the user's secret, and the one of the job that its processes have."""
    h1, h2, h3, *_ = rig.hosts
    with rig.capture() as capture:
        if how == "master":
            team.meet([h1, h2, h3], "--nnodes=3", "--server_num=1", "--trainer_num=1")
        else:
            team.from_here(h1, "h1:servers=1:trainers=1,h2:servers=1:trainers=1,h3:servers=1:trainers=1",
                           "--run_mode=ps")
        world = team.wait_for_world(3, servers=3)
        files = {one["host"]: one["environment"]["FLEETRUN_SECRET_FILE"] for one in world.values()}
        jobs = {host.read(files[host.name]).strip() for host in (h1, h2, h3)}
        team.order("all", "exit 0")
        assert set(team.finish().values()) == {0}
    assert capture.lost == 0
    streams = capture.streams()
    assert sum(len(data) for data in streams.values()) > 1000, "nothing was captured"
    (job,) = jobs
    assert len(job) in (32, 64) and job not in (team.secret, team.secret.hex().encode())
    for secret in (team.secret, job if len(job) == 32 else bytes.fromhex(job.decode())):
        for needle in spellings(secret):
            for key, data in streams.items():
                assert needle not in data, key


@pytest.mark.parametrize("flags", [[], ["--insecure"]], ids=["sealed", "insecure"])
def test_what_hosts_tell_each_other_can_be_read_only_where_nothing_is_proved(rig, team, flags):
    with rig.capture() as capture:
        team.meet(rig.hosts[:2], "--nnodes=2", "--job_id=a-job-that-can-be-read", *flags)
        team.wait_for_world(2)
        team.order("all", "exit 0")
        assert set(team.finish().values()) == {0}
    read = any(b"a-job-that-can-be-read" in data for data in capture.streams().values())
    assert read == bool(flags)


def test_every_listener_of_a_job_on_one_host_is_on_loopback(rig, team):
    h1, *_ = rig.hosts
    job = h1.start("--python", sys.executable, "--server_num=1", "--trainer_num=2", *team.script)
    team.wait_for_world(2, servers=1)
    assert {address for address, _ in h1.listeners()} <= {"127.0.0.1"}
    team.order("all", "exit 0")
    job.finish()
    assert job.status == 0


def test_every_listener_of_a_job_on_several_hosts_is_on_the_named_address(rig, team):
    team.meet(rig.hosts[:3], "--nnodes=3", "--nproc_per_node=2")
    team.wait_for_world(6)
    for host in rig.hosts[:3]:
        assert {address for address, _ in host.listeners()} <= {host.address, "127.0.0.1"}, host.listeners()
    assert (rig.hosts[0].address, PORT) in rig.hosts[0].listeners()
    team.order("all", "exit 0")
    assert set(team.finish().values()) == {0}


def test_two_thousand_idle_connections_do_not_keep_four_hosts_from_meeting(rig, team):
    """T11: before the job's own hosts come, a stranger holds as many connections as the coordinator takes."""
    h1, h2, h3, h4, h5 = rig.hosts
    team.start(h1, "--nnodes=4")
    deadline = time.monotonic() + 5
    while (h1.address, PORT) not in h1.listeners():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    stranger = h5.popen([sys.executable, "-c", IDLE, h1.address, PORT, 2000], stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, text=True)
    assert int(stranger.stdout.readline()) > 100
    begin = time.time()
    team.meet([h2, h3, h4], "--nnodes=4")
    world = team.wait_for_world(4)
    assert max(record["at"] for record in world.values()) - begin < 2
    team.order("all", "exit 0")
    assert set(team.finish(hosts=[h1, h2, h3, h4]).values()) == {0}
    stranger.stdin.close()
    stranger.wait(10)


def test_proxies_of_the_environment_are_passed_on_and_not_used(rig, team):
    proxies = {"http_proxy": "http://10.77.0.5:1", "https_proxy": "http://10.77.0.5:1",
               "HTTP_PROXY": "http://10.77.0.5:1",
               "no_proxy": "example.org"}
    for host in rig.hosts[:2]:
        team.start(host, "--nnodes=2", environment=host.environment(**proxies))
    world = team.wait_for_world(2)
    for record in world.values():
        assert {name: record["environment"].get(name) for name in proxies} == proxies
    team.order("all", "exit 0")
    assert set(team.finish().values()) == {0}

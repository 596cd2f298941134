"""Restarts on one host: who is started again, how often, and what is kept of each attempt."""

import os
import signal

import pytest

from fleetrun_job import wait_until

# Fails in the first attempts, by the number of its attempt, once all of them have said that they run.
FAILS_UNTIL = """#!/bin/sh
echo "rank $PADDLE_TRAINER_ID attempt $FLEETRUN_ATTEMPT of torch's $TORCHELASTIC_RESTART_COUNT"
touch "up.$FLEETRUN_ATTEMPT.$PADDLE_TRAINER_ID"
[ "$PADDLE_TRAINER_ID" = 1 ] && while [ "$(ls up."$FLEETRUN_ATTEMPT".* | wc -l)" -lt "$PADDLE_TRAINERS_NUM" ]; do sleep 0.01; done
[ "$PADDLE_TRAINER_ID" = 1 ] && [ "$FLEETRUN_ATTEMPT" -lt "$1" ] && exit "$((10 + FLEETRUN_ATTEMPT))"
[ "$FLEETRUN_ATTEMPT" -lt "$1" ] && exec sleep 1000
exit 0
"""


def attempts(job):
    pods = [entry for entry in (job.directory / "log").iterdir() if entry.is_dir()]
    assert len(pods) == 1
    return pods[0], sorted(int(entry.name) for entry in pods[0].iterdir() if entry.name.isdigit())


def test_the_whole_group_is_started_again_and_each_attempt_keeps_its_logs(work):
    script = work.script("train.sh", FAILS_UNTIL, 0o755)
    job = work.run("--max_restart=3", "--restart_backoff=0", "--nproc_per_node=3", script, "2")
    assert job.status == 0, job.err
    pod, numbers = attempts(job)
    assert numbers == [0, 1, 2]
    for attempt in numbers:
        for rank in range(3):
            text = (pod / str(attempt) / f"workerlog.{rank}").read_text()
            assert text == f"rank {rank} attempt {attempt} of torch's {attempt}\n"
    assert os.path.samefile(job.directory / "log" / "workerlog.1", pod / "2" / "workerlog.1")
    assert "attempt 1 (crash, restart 1 of 3)" in job.err
    assert not job.survivors()


def test_nothing_is_restarted_unless_the_user_asks(work):
    script = work.script("train.sh", FAILS_UNTIL, 0o755)
    job = work.run("--nproc_per_node=2", script, "1")
    assert job.status == 10 and attempts(job)[1] == [0]


def test_an_elastic_level_turns_the_listed_default_on(work):
    script = work.script("train.sh", FAILS_UNTIL, 0o755)
    job = work.run("--elastic_level=0", "--restart_backoff=0", "--nproc_per_node=2", script, "2")
    assert job.status == 0 and attempts(job)[1] == [0, 1, 2]


def test_the_exit_status_is_that_of_the_last_attempt(work):
    script = work.script("train.sh", FAILS_UNTIL, 0o755)
    job = work.run("--max_restart=1", "--nproc_per_node=2", script, "9")
    assert job.status == 11 and attempts(job)[1] == [0, 1]
    assert "no restart: all 1 restarts after crash are used up" in job.err


STUCK = """#!/bin/sh
[ -z "$1" ] || echo "step $1" >&"$FLEETRUN_HEARTBEAT_FD"
echo 'ValueError: shapes differ'
exit 1
"""


def test_the_same_failure_ends_it_early_where_it_is_asked_for(work):
    script = work.script("train.sh", STUCK, 0o755)
    job = work.run("--max_restart=50", "--restart_backoff=0", "--same_failure_limit=3", script, "7")
    assert job.status == 1 and attempts(job)[1] == [0, 1, 2]
    assert "no restart: the same failure 3 times in a row, and no progress" in job.err


@pytest.mark.parametrize("flags, step", [([], "7"), (["--same_failure_limit=3"], "")],
                         ids=["no limit", "no heartbeats"])
def test_all_restarts_are_used_otherwise(work, flags, step):
    script = work.script("train.sh", STUCK, 0o755)
    job = work.run("--max_restart=5", "--restart_backoff=0", *flags, script, step)
    assert job.status == 1 and attempts(job)[1] == [0, 1, 2, 3, 4, 5]
    assert "no restart: all 5 restarts after crash are used up" in job.err


def test_preemption_has_a_budget_of_its_own(work):
    script = work.script("train.sh", '#!/bin/sh\n[ "$FLEETRUN_ATTEMPT" -lt 5 ] && exit 75\nexit 0\n', 0o755)
    job = work.run("--restart_budget=crash=0,preemption=10", "--restart_backoff=0", script)
    assert job.status == 0, job.err
    assert attempts(job)[1] == [0, 1, 2, 3, 4, 5]


def test_nothing_of_an_attempt_lives_on_in_the_next(work, python):
    """A grandchild in a session of its own that ignores SIGTERM; the next attempt finds its pid gone."""
    script = work.script(
        "train.py",
        """
import os, signal, subprocess, sys
if os.environ["FLEETRUN_ATTEMPT"] == "0":
    child = subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; while :; do sleep 1000; done"], start_new_session=True)
    open("child.pid", "w").write(str(child.pid))
    sys.exit(3)
pid = int(open("child.pid").read())
try:
    os.kill(pid, 0)
    sys.exit("it lives")
except ProcessLookupError:
    pass
""",
    )
    job = work.run("--python", python, "--containment=cgroup2", "--max_restart=1", script)
    assert job.status == 0, job.err


def test_ctrl_c_ends_a_job_that_waits_for_its_next_attempt(work):
    script = work.script("train.sh", "#!/bin/sh\nexit $((FLEETRUN_ATTEMPT + 1))\n", 0o755)
    job = work.start("--max_restart=50", "--restart_backoff=1000000", script)
    wait_until(lambda: b"attempt 2 in " in os.read(job.process.stderr.fileno(), 65536), "the backoff")
    job.signal(signal.SIGINT)
    assert job.finish().status == 130
    assert attempts(job)[1] == [0, 1]


SERVER = """
import os, socket, sys, time
listener = socket.create_server(("127.0.0.1", int(os.environ["PADDLE_PORT"])))
print("serving", os.environ["FLEETRUN_ATTEMPT"], os.getpid(), flush=True)
time.sleep(1000)
"""

TRAINER = """
import os, time
print("training", os.getpid(), flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
"""


@pytest.fixture
def ps_job(work, python):
    script = work.script(
        "train.py",
        f"import os\nexec({SERVER!r} if os.environ['TRAINING_ROLE'] == 'PSERVER' else {TRAINER!r})\n"
    )

    def start(*flags):
        job = work.start("--python", python, "--server_num=2", "--trainer_num=2", "--grace=1", *flags, script)
        for number in (0, 1):
            job.wait_for_log(f"serverlog.{number}", "serving 0")
        for number in (0, 1):
            job.wait_for_log(f"workerlog.{number}", "\n")
        return job

    return start


def server_pid(job, number):
    return int(job.log(f"serverlog.{number}").split()[2])


def test_a_server_is_started_again_alone_and_the_trainers_go_on(ps_job, work):
    job = ps_job("--max_restart=3", "--containment=cgroup2")
    os.kill(server_pid(job, 1), signal.SIGKILL)
    wait_until(lambda: "serving 1" in job.log("serverlog.1"), "the second start")
    (work.directory / "go").touch()
    assert job.finish().status == 0, job.err
    assert "server 1 is started again: attempt 1" in job.err
    pod, numbers = attempts(job)
    assert sorted(entry.name for entry in (pod / "1").iterdir()) == ["serverlog.1"]


def test_a_trainer_of_servers_is_started_again_alone(ps_job, work):
    job = ps_job("--max_restart=3", "--containment=cgroup2")
    os.kill(int(job.log("workerlog.1").split()[1]), signal.SIGKILL)
    pod = wait_until(lambda: list(work.directory.glob("log/*/1/workerlog.1")), "the second start")[0]
    wait_until(lambda: "training" in pod.read_text(), "the second training")
    (work.directory / "go").touch()
    assert job.finish().status == 0, job.err
    assert "trainer 1 is started again: attempt 1" in job.err
    assert sorted(entry.name for entry in pod.parent.iterdir()) == ["workerlog.1"]


def test_the_role_decides_who_is_started_again(ps_job, work):
    job = ps_job("--max_restart=3", "--restart=server=never", "--containment=cgroup2")
    os.kill(server_pid(job, 0), signal.SIGKILL)
    job.finish()
    assert job.status == 137 and attempts(job)[1] == [0]
    assert "server 0 is of a role that is not restarted" in job.err

"""Failures on purpose (--inject): each kind, and that a seed repeats a course."""

import re

from fleetrun_job import clean_environment, wait_until

WAIT = "import os, time\nprint('attempt', os.environ['FLEETRUN_ATTEMPT'], flush=True)\ntime.sleep(86400)\n"


def start(work, python, spec, script=WAIT, *flags, size=2):
    work.script("job.py", script)
    return work.start(f"--nproc_per_node={size}", f"--python={python}", "--log_level=warning", "--grace=5",
                      f"--inject={spec}",
                      *flags, "job.py")


def injected(job):
    return [line.partition("injected: ")[2] for line in job.err.splitlines() if "injected: " in line]


def test_a_worker_is_killed_when_the_time_has_come(work, python):
    job = start(work, python, "kill rank=1 at=50ms").finish()
    assert job.status == 137
    assert injected(job) == ["SIGKILL to trainer 1, 0.05 s into attempt 0"]
    assert "trainer 1" in job.err and "first failure" in job.err
    assert not job.survivors()


def test_each_attempt_can_have_its_own(work, python):
    script = "import os, time\nif os.environ['FLEETRUN_ATTEMPT'] != '2': time.sleep(86400)\n"
    job = start(work, python, "segv rank=0; abort rank=1 at=20ms attempt=1", script, "--max_restart=2",
                "--restart_backoff=0").finish()
    assert job.status == 0, job.err
    assert injected(job) == ["SIGSEGV to trainer 0 as soon as it is started, in attempt 0",
                             "SIGABRT to trainer 1, 0.02 s into attempt 1"]


def test_all_workers_at_once_are_one_failure_and_one_restart(work, python):
    script = "import os, time\nif os.environ['FLEETRUN_ATTEMPT'] == '0': time.sleep(86400)\n"
    job = start(work, python, "kill rank=all at=100ms", script, "--max_restart=5", size=16).finish()
    assert job.status == 0, job.err
    assert len(injected(job)) == 16
    assert job.err.count("all processes are started again") == 1


def test_fleetrun_itself_and_its_init(work, python):
    job = start(work, python, "launcher kill at=50ms").finish()
    assert job.status == -9
    wait_until(lambda: not job.survivors(), "everything ends with fleetrun")
    job = start(work, python, "init kill at=50ms").finish()
    assert job.status == 125
    assert not job.survivors()


def test_a_slow_start_delays_one_worker_and_a_stop_does_not_wait_for_it(work, python):
    script = "import time\nprint(time.monotonic(), flush=True)\n"
    job = start(work, python, "slow-start rank=1 by=300ms", script).finish()
    assert job.status == 0
    assert injected(job) == ["trainer 1 starts 300 ms later, in attempt 0"]
    assert float(job.log("workerlog.1")) - float(job.log("workerlog.0")) > 0.2
    job = start(work, python, "slow-start rank=1 by=86400s; kill rank=0 at=50ms").finish()
    assert job.status == 137
    assert not job.survivors()


def test_a_step_is_waited_for_that_heartbeats_report(work, python):
    script = """
import os
heartbeat, step = int(os.environ["FLEETRUN_HEARTBEAT_FD"]), 0
while True:
    step += 1
    try:
        os.write(heartbeat, b"step %d\\n" % step)
    except BlockingIOError:
        pass
"""
    job = start(work, python, "segv rank=1 at=step:1000", script).finish()
    assert job.status == 139, job.err
    assert injected(job) == ["SIGSEGV to trainer 1 at step 1000 of attempt 0"]


def test_a_seed_is_told_and_repeats_the_course(work, python):
    spec = "kill rank=any at=1ms..60ms; slow-start rank=any by=0s..50ms"
    first = start(work, python, spec, size=6).finish()
    told = injected(first)
    seed = re.fullmatch(r"what is drawn follows seed (\d+); --inject_seed=\1 repeats it",
                        next(line for line in told if "seed" in line))[1]
    again = start(work, python, spec, WAIT, f"--inject_seed={seed}", size=6).finish()
    assert sorted(injected(again)) == sorted(told)
    assert first.status == again.status == 137


def test_what_does_not_fit_the_job_is_refused_before_anything_starts(work, python):
    for spec, what, hint in (
        ("kill rank=7", "--inject 'kill rank=7': there is no trainer 7", "the ranks on this host go up to 1"),
        ("kill rank=0 role=server", "--inject 'kill rank=0 role=server': the job has no role 'server'",
         "there are trainer"),
        ("kil rank=0", "--inject 'kil rank=0': there is no action 'kil'", "did you mean kill?"),
    ):
        job = start(work, python, spec).finish()
        assert job.status == 125
        assert job.err == f"fleetrun: error: {what}\n  hint: {hint}\n"
        assert not (work.directory / "log").exists()


def test_the_flag_comes_from_nowhere_but_the_command_line(work):
    job = work.run("/bin/true", environment=clean_environment(FLEETRUN_INJECT="kill rank=0"))
    assert job.status == 0

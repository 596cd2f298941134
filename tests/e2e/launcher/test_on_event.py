"""--on_event: a command of the user's for what happens in a job, which never holds the job up."""

import json
import os
import time

from fleetrun_job import clean_environment, marked_pids, wait_until

NOTE = """cat >> told
env | grep ^FLEETRUN_EVENT | sort > variables.$FLEETRUN_EVENT
if [ $FLEETRUN_EVENT = end ]; then ls log/verdict.json > seen; fi"""
FAILS_ONCE = """import os, sys
if os.environ["FLEETRUN_ATTEMPT"] == "0" and os.environ["PADDLE_TRAINER_ID"] == "1":
    raise ValueError("it is 7 instead of 8")
"""
SHORT = "print('done')\n"


def told(work):
    path = work.directory / "told"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def names(work):
    return [each["event"] for each in told(work)]


def test_start_failure_restart_and_end_are_told_with_their_facts(work):
    work.script("t.py", FAILS_ONCE)
    job = work.run("--nproc_per_node=2", "--max_restart=1", "--restart_backoff=0", "--job_id=night",
                   f"--on_event={NOTE}", "t.py")
    assert job.status == 0, job.err
    start, failure, restart, end = told(work)
    log_dir = str(work.directory / "log")
    assert start == {"schema": 1, "event": "start", "job": "night", "log_dir": log_dir}
    assert (failure["event"], failure["process"], failure["cause"], failure["attempt"]) == (
        "failure", "trainer 1", "crash", 0)
    assert failure["why"] == "exited with 1: ValueError: it is 7 instead of 8"
    assert (restart["event"], restart["attempt"], restart["backoff_ms"]) == ("restart", 1, 0)
    assert restart["why"] == "crash, restart 1 of 1"
    assert end == {"schema": 1, "event": "end", "job": "night", "log_dir": log_dir, "exit_status": 0}
    variables = (work.directory / "variables.failure").read_text().splitlines()
    assert variables == ["FLEETRUN_EVENT=failure", "FLEETRUN_EVENT_ATTEMPT=0", "FLEETRUN_EVENT_CAUSE=crash",
                         "FLEETRUN_EVENT_JOB=night", f"FLEETRUN_EVENT_LOG_DIR={log_dir}",
                         "FLEETRUN_EVENT_PROCESS=trainer 1", f"FLEETRUN_EVENT_WHY={failure['why']}"]
    assert (work.directory / "seen").read_text() == "log/verdict.json\n", "the end has its verdict"


def test_the_end_of_a_failed_job_says_which_process_and_why(work):
    work.script("t.py", "raise SystemExit(3)")
    job = work.run("--nproc_per_node=2", f"--on_event={NOTE}", "t.py")
    assert job.status == 3
    end = told(work)[-1]
    assert (end["event"], end["exit_status"], end["cause"]) == ("end", 3, "failed")
    assert end["why"].startswith(end["process"]) and "exited with 3" in end["why"]


def test_a_command_that_hangs_is_killed_with_what_it_started_and_costs_the_job_no_time(work):
    work.script("t.py", SHORT)
    begun = time.monotonic()
    job = work.start("--on_event=[ $FLEETRUN_EVENT = start ] || exit 0; touch runs; sleep 300 & sleep 300",
                     "t.py")
    job.wait_for_log("workerlog.0", "done")
    assert job.finish().status == 0
    assert time.monotonic() - begun < 25, "at most ten seconds after the job's end"
    assert "--on_event did not end in time and was killed (event: start)" in job.err
    assert job.err.count("--on_event") == 1
    wait_until(lambda: not marked_pids(job.mark), "all of its session is gone")


def test_a_command_that_fails_is_one_warning(work):
    work.script("t.py", FAILS_ONCE)
    job = work.run("--nproc_per_node=2", "--max_restart=1", "--restart_backoff=0",
                   "--on_event=echo not sent >&2; exit 7", "t.py")
    assert job.status == 0
    assert job.err.count("the command of --on_event exited with 7 (event: start)") == 1
    assert job.err.count("--on_event exited") == 1 and job.err.count("not sent\n") == 4


def test_what_it_leaves_in_its_session_is_killed_and_it_has_no_descriptor_of_the_job(work):
    work.script("t.py", SHORT)
    job = work.run("--on_event=ls -l /proc/self/fd > open.$FLEETRUN_EVENT; sleep 300 & true", "t.py")
    assert job.status == 0, job.err
    assert not marked_pids(job.mark)
    assert "socket:" not in (work.directory / "open.start").read_text()


def test_it_has_the_environment_of_fleetrun_and_not_the_secret_of_the_run(work):
    work.script("t.py", "import os; print('file', os.environ['FLEETRUN_SECRET_FILE'])")
    job = work.run("--nproc_per_node=2", "--on_event=env > environment", "t.py",
                   environment=clean_environment(MINE="here"))
    assert job.status == 0
    text = (work.directory / "environment").read_text()
    assert "MINE=here" in text and "FLEETRUN_SECRET" not in text and "PADDLE_" not in text


def test_a_dry_run_shows_it_and_runs_nothing(work):
    work.script("t.py", SHORT)
    shown = work.run("--dry-run", "--on_event=touch ran", "t.py")
    assert "\non event: touch ran\n" in shown.out
    as_json = work.run("--dry-run=json", "--on_event=touch ran", "t.py")
    assert json.loads(as_json.out)["on_event"] == "touch ran"
    assert "on_event" not in json.loads(work.run("--dry-run=json", "t.py").out)
    assert not os.path.exists(work.directory / "ran")


def test_a_job_file_has_it_and_its_report_does_not(work):
    work.script("t.py", SHORT)
    role = {"name": "worker", "count": 2, "command": ["python3", "t.py"]}
    work.script("job.json", json.dumps({"on_event": "cat >> told; : hooks/secret-01", "roles": [role]}))
    job = work.run("job.json")
    assert job.status == 0, job.err
    assert names(work) == ["start", "end"]
    record = next(work.directory.glob("log/*/record")).read_bytes()
    assert b"secret-01" not in record


def test_a_stop_is_an_end_and_the_background_tells_it(work):
    work.script("t.py", "import time; print('up', flush=True); time.sleep(60)")
    job = work.run("--detach", "--job_id=told", f"--on_event={NOTE}", "t.py")
    assert job.status == 0, job.err
    wait_until(lambda: names(work) == ["start"], "the start is told")
    stopped = work.run("stop", "told")
    assert "has ended with exit status 143" in stopped.out + stopped.err
    wait_until(lambda: names(work) == ["start", "end"], "the end is told")
    assert told(work)[-1]["exit_status"] == 143 and told(work)[-1]["cause"] == "stopped"

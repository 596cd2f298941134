"""Jobs that hang, and failures on purpose."""

import signal

BARRIER = """
import os, sys, threading, time
if os.environ["FLEETRUN_ATTEMPT"] == "0":
    if os.environ["FLEETRUN_RANK"] == "2":
        time.sleep(1000)
    threading.Barrier(2).wait()
print("done", flush=True)
"""


def test_the_odd_one_of_a_job_that_hangs_is_named_and_the_job_is_started_again(work, python):
    work.script("train.py", BARRIER)
    job = work.run("--python", python, "--nproc_per_node=4", "--hang_timeout=0.5", "--max_restart=1", "train.py")
    assert job.status == 0, job.err
    assert "the job hangs" in job.err and "trainer 2, not where the others are:" in job.err
    assert "because trainer 2 failed: attempt 1 (hang, restart 1 of 1)" in job.err
    assert job.log("workerlog.2") == "done\n"


def test_without_a_restart_a_hang_is_the_failure_of_the_job(work, python):
    work.script("train.py", BARRIER)
    job = work.run("--python", python, "--nproc_per_node=3", "--hang_timeout=0.5", "--grace=1", "train.py")
    assert job.status == 128 + signal.SIGKILL
    assert "trainer 2" in job.err.split("Pod failed")[1]
    assert not job.survivors()


def test_an_injected_signal_is_told_and_does_what_it_says(work):
    job = work.run("--nproc_per_node=3", "--inject", "kill rank=1 at=0.1s", "/bin/sleep", "1000")
    assert job.status == 128 + signal.SIGKILL
    assert "injected: SIGKILL to trainer 1" in job.err and "trainer 1 was killed by SIGKILL" in job.err
    assert not job.survivors()


def test_a_process_whose_start_is_delayed_does_not_hold_up_the_end(work):
    job = work.run("--nproc_per_node=2", "--inject", "slow-start rank=1 by=1000s; term rank=0 at=0.1s", "/bin/sleep", "1000", seconds=20)
    assert job.status == 128 + signal.SIGTERM
    assert job.log("workerlog.1") == ""


def test_heartbeats_of_a_python_script_keep_it_alive_and_carry_steps(work, python):
    """Steps come until an injection that waits for one of them."""
    work.script(
        "train.py",
        """
import os
fd = int(os.environ["FLEETRUN_HEARTBEAT_FD"])
step = 0
while True:
    step += 1
    try:
        os.write(fd, b"step %d\\n" % step)
    except BlockingIOError:
        pass
""",
    )
    job = work.run("--python", python, "--hang_timeout=60", "--inject", "segv rank=0 at=step:1000", "train.py")
    assert job.status == 128 + signal.SIGSEGV, job.err

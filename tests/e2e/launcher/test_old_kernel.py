"""Jobs on an older Linux (a container of today on a host of RHEL 8), and where new calls are forbidden."""

import errno
import json
import os
import signal

import pytest

from fleetrun_job import ROOT, clean_environment
from old_kernel import AFTER_5_0, PIDFD_OPEN, WAITID, without

KERNELS = pytest.mark.parametrize("kernel", [without(AFTER_5_0), without([PIDFD_OPEN], errno.EPERM),
                                             without([WAITID], errno.EPERM)],
                                  ids=["4.18", "pidfd_open forbidden", "waitid forbidden"])


@KERNELS
def test_a_job_runs_and_its_status_is_right(work, kernel):
    for status in (0, 5):
        # The first alone fails: another that did might end it before it has printed.
        script = f"echo x; exit $((PADDLE_TRAINER_ID ? 0 : {status}))"
        job = work.run("--log_level=error", "--nproc_per_node=2", "/bin/sh", "-c", script, preexec_fn=kernel)
        assert (job.status, job.out) == (status, "x\n"), job.err
        assert not job.survivors()


@KERNELS
def test_a_job_is_ended_by_a_signal_and_leaves_nothing(work, kernel):
    job = work.start("--nproc_per_node=2", "/bin/sh", "-c", "sleep 100 & echo up; wait", preexec_fn=kernel)
    job.wait_for_log("workerlog.1", "up")
    job.signal(signal.SIGTERM)
    assert job.finish().status == 128 + signal.SIGTERM
    assert not job.survivors()


@KERNELS
def test_processes_have_nothing_open_that_was_open_in_the_shell(work, kernel):
    with open(os.devnull) as other:
        job = work.run("/bin/ls", "/proc/self/fd", pass_fds=[other.fileno()], preexec_fn=kernel)
    assert job.out.split() == ["0", "1", "2", "3"], job.err  # 3 is ls's own


@KERNELS
def test_a_failed_job_is_restarted(work, kernel):
    work.script("train.sh", "#!/bin/sh\n[ -e second ] || { touch second; exit 3; }\n", 0o755)
    job = work.run("--max_restart=1", "--restart_backoff=0", "./train.sh", preexec_fn=kernel)
    assert job.status == 0 and "restart 1 of 1" in job.err, job.err


@KERNELS
def test_commands_at_events_have_their_time(work, kernel):
    job = work.run("--on_event=cat >> told", "/bin/true", preexec_fn=kernel)
    assert job.status == 0 and "did not end in time" not in job.err, job.err
    told = [json.loads(line) for line in (work.directory / "told").read_text().splitlines()]
    assert told and all("event" in each for each in told)


@KERNELS
def test_a_job_in_the_background_is_found_and_stopped(work, kernel, tmp_path):
    environment = clean_environment(XDG_RUNTIME_DIR=str(tmp_path))
    job = work.run("--detach", "--job_id=old", "/bin/sleep", "100", environment=environment,
                   preexec_fn=kernel)
    assert job.status == 0, job.err
    stopped = work.run("stop", "old", environment=environment, preexec_fn=kernel)
    assert stopped.status == 0, stopped.err
    assert not job.survivors()


@KERNELS
def test_other_hosts_are_reached(work, kernel, python):
    place = work.directory / "fake"
    place.mkdir()
    (place / "config.json").write_text("{}")
    job = work.run("--ssh", f"{python} -IS {ROOT}/tests/support/fake_ssh.py", "--hosts=h1,h2", "/bin/sh",
                   "-c", "echo of $PADDLE_TRAINERS_NUM", environment=clean_environment(FAKE_SSH=str(place)),
                   preexec_fn=kernel)
    assert job.status == 0 and "of 2" in job.out, job.err


def test_injected_signals_are_refused_by_name(work):
    job = work.run("--inject=kill rank=0 at=1s", "/bin/true", preexec_fn=without([PIDFD_OPEN]))
    assert job.status == 125 and "--inject needs pidfd_open()" in job.err, job.err

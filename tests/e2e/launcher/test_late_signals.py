"""Signals between the end of a job and that of its launcher change neither the status nor what is kept."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from fleetrun_job import clean_environment, wait_until

# As soon as there is a file "over", sends the process of that name a storm whenever its signals get their
# defaults back, and just before it exits.
STORM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static pid_t self;
__attribute__((constructor)) static void begin(void) {
  if (strcmp(program_invocation_short_name, "fleetrun") == 0) self = getpid();
}
static void storm(void) {
  const int numbers[] = {SIGHUP, SIGUSR1, SIGTERM, SIGINT};
  for (unsigned i = 0; self == getpid() && access("over", F_OK) == 0 && i < 4; ++i) kill(self, numbers[i]);
}
int sigaction(int number, const struct sigaction* restrict action, struct sigaction* restrict before) {
  int (*real)(int, const struct sigaction*, struct sigaction*) = dlsym(RTLD_NEXT, "sigaction");
  int result = real(number, action, before);
  if (action != 0 && action->sa_handler == SIG_DFL) storm();
  return result;
}
void _exit(int status) {
  storm();
  for (;;) syscall(SYS_exit_group, status);
}
"""
END_TAKES_LONG = "[ $FLEETRUN_EVENT != end ] || { touch told; exec sleep 1000; }"


@pytest.fixture
def stormy(tmp_path):
    """The environment of a launcher that is stormed at."""
    if not shutil.which("cc"):
        pytest.skip("there is no compiler")
    (tmp_path / "storm.c").write_text(STORM)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", tmp_path / "storm.so", tmp_path / "storm.c"],
                   check=True)
    return clean_environment(LD_PRELOAD=str(tmp_path / "storm.so"))


@pytest.mark.parametrize("flags", [[], ["--on_event=true"], ["--master=127.0.0.1:PORT", "--nnodes=1"],
                                   ["--hosts=localhost"], ["--restart_backoff=0", "--max_restart=1"]],
                         ids=" ".join)
@pytest.mark.parametrize("status", [0, 7])
def test_a_storm_while_the_launcher_ends_leaves_status_and_record(work, stormy, ports, flags, status):
    (port,) = ports(1)
    flags = [flag.replace("PORT", str(port)) for flag in flags]
    job = work.run(*flags, "/bin/sh", "-c", f"touch over; exit {status}", environment=stormy)
    assert job.status == status, job.err
    assert f"Exit code {status}" in job.err
    assert verdict(work)["exit_status"] == status


def test_a_storm_after_a_signal_that_stopped_the_job_or_its_meeting(work, stormy, ports):
    job = work.start("/bin/sh", "-c", "echo up; exec sleep 1000", environment=stormy)
    job.wait_for_log("workerlog.0", "up")
    (work.directory / "over").touch()
    job.signal(signal.SIGTERM)
    assert job.finish().status == 143, job.err
    job = work.start(f"--master=127.0.0.1:{ports(1)[0]}", "--nnodes=2", "/bin/true", environment=stormy,
                     stderr=subprocess.PIPE)
    while b"Waiting peer start" not in job.process.stderr.readline():
        pass
    job.signal(signal.SIGINT)
    assert job.finish().status == 130, job.err


def test_nobody_has_to_wait_for_a_slow_command_of_the_end(work):
    begun = time.monotonic()
    job = work.start(f"--on_event={END_TAKES_LONG}", "/bin/sh", "-c", "exit 5")
    wait_until((work.directory / "told").exists, "the end is told")
    leave_by(job, signal.SIGINT)
    assert job.finish().status == 5, job.err
    assert time.monotonic() - begun < 8, "it has waited for the command"
    assert not job.survivors()


def test_nobody_has_to_wait_for_a_terminal_that_takes_nothing(work):
    reading, writing = os.pipe()
    job = work.start("/bin/sh", "-c", "echo up; while [ ! -e go ]; do sleep 0.01; done; exit 6",
                     stderr=writing)
    job.wait_for_log("workerlog.0", "up")
    fill(writing)
    (work.directory / "go").touch()
    wait_until(lambda: (work.directory / "log" / "verdict.json").exists(), "the verdict")
    leave_by(job, signal.SIGTERM)
    os.close(reading)
    assert job.process.returncode == 6
    assert verdict(work)["exit_status"] == 6


def verdict(work):
    return json.loads(next((work.directory / "log").rglob("verdict.json")).read_text())


def leave_by(job, number):
    def left():
        job.process.poll() is None and job.signal(number)
        return job.process.poll() is not None

    wait_until(left, "the launcher ends")


def fill(pipe):
    flags = fcntl.fcntl(pipe, fcntl.F_GETFL)
    fcntl.fcntl(pipe, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    try:
        while True:
            os.write(pipe, b"." * 4096)
    except BlockingIOError:
        fcntl.fcntl(pipe, fcntl.F_SETFL, flags)
    os.close(pipe)

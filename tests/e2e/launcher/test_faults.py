"""Nothing outlives the job, however it ends."""

import contextlib
import os
import shutil
import signal

import pytest

from fleetrun_job import find_fleetrun, reachable_fleetrun, wait_until

# A trainer with children that ignore SIGTERM, left its session, were orphaned, and are stopped.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sleep = ["/bin/sh", "-c", "trap '' TERM HUP INT; while :; do sleep 1000; done"]
subprocess.Popen(sleep, start_new_session=True)
subprocess.Popen(sleep)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        subprocess.Popen(sleep)
        time.sleep(1000)
    os._exit(0)
os.wait()
stopped = subprocess.Popen(sleep, start_new_session=True)
os.kill(stopped.pid, signal.SIGSTOP)
print("up", flush=True)
time.sleep(1000)
"""


@pytest.fixture
def stubborn(work, python):
    work.script("stubborn.py", STUBBORN)

    def start(*flags):
        shutil.rmtree(work.directory / "log", ignore_errors=True)
        job = work.start("--python", python, *flags, "--nproc_per_node=2", "stubborn.py")
        job.wait_for_log("workerlog.0", "up")
        job.wait_for_log("workerlog.1", "up")
        assert len(job.survivors()) >= 13  # init, two trainers, and their children
        return job

    return start


def init_pid(job):
    for pid in job.survivors():
        with open(f"/proc/{pid}/stat") as file:
            if int(file.read().rpartition(")")[2].split()[1]) == job.process.pid:
                return pid


def test_sigkill_of_fleetrun_leaves_nothing_alive(stubborn):
    for _ in range(3):
        job = stubborn()
        job.process.kill()
        wait_until(lambda: not job.survivors(), "the end of the tree")


def test_sigkill_of_init_leaves_nothing_alive_and_is_said(stubborn):
    job = stubborn()
    os.kill(init_pid(job), signal.SIGKILL)
    job.finish()
    assert job.status == 125 and "fleetrun-init" in job.err
    assert not job.survivors()


SAVING = """
import os, signal, sys, time
def save(number, frame):
    print("saving", flush=True); time.sleep(0.3); print("saved", flush=True); sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("up", flush=True)
while not (os.path.exists("go") and os.environ["RANK"] == "1"):
    time.sleep(0.01)
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(60)
"""


@pytest.mark.parametrize("whom", ["every process", "init", "parent"])
def test_a_sigterm_that_init_gets_too_stops_the_job_in_order(work, python, whom):
    """As systemd and batch systems send it: processes have their grace to save."""
    work.script("saving.py", SAVING)
    job = work.start("--python", python, "--nproc_per_node=2", "saving.py")
    for rank in range(2):
        job.wait_for_log(f"workerlog.{rank}", "up")
    if whom == "parent":
        (work.directory / "go").touch()
    for pid in {"every process": [init_pid(job), *job.survivors(), job.process.pid],
                "init": [init_pid(job)], "parent": []}[whom]:
        os.kill(pid, signal.SIGTERM)
    job.finish()
    assert job.status == 143 and "fleetrun got SIGTERM" in job.err and not job.survivors()
    for rank in range(2):
        assert "saved" in job.log(f"workerlog.{rank}")


def test_a_second_sigterm_of_init_kills_at_once(stubborn):
    job = stubborn()
    init = init_pid(job)

    def ended():
        with contextlib.suppress(ProcessLookupError):
            os.kill(init, signal.SIGTERM)
        return job.process.poll() is not None

    wait_until(ended, "the end, before the grace of 30 s", 15)
    job.finish()
    assert job.status == 143 and not job.survivors()


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143),
                                            (signal.SIGHUP, 129)])
def test_a_signal_stops_the_job_in_order(stubborn, number, status):
    job = stubborn("--grace=0.3")
    job.signal(number)
    job.finish()
    assert job.status == status
    assert f"fleetrun got {number.name}" in job.err
    assert not job.survivors()


def test_a_second_ctrl_c_does_not_wait_for_the_grace(stubborn):
    job = stubborn("--grace=100")
    job.signal(signal.SIGINT)
    wait_until(lambda: b"Terminating with signal 2" in os.read(job.process.stderr.fileno(), 65536),
               "the first")
    job.signal(signal.SIGINT)
    job.finish()
    assert job.status == 130 and not job.survivors()


def test_processes_are_asked_all_at_once_and_have_the_grace_to_end(work):
    script = work.script("polite.sh",
                         "#!/bin/sh\ntrap 'sleep 0.2; echo saved; exit 0' TERM\necho up\n"
                         "while :; do sleep 0.01; done\n", 0o755)
    job = work.start("--nproc_per_node=8", script)
    for i in range(8):
        job.wait_for_log(f"workerlog.{i}", "up")
    job.signal(signal.SIGTERM)
    job.finish()
    assert job.status == 143
    assert all(job.log(f"workerlog.{i}").endswith("saved\n") for i in range(8))


def test_a_stopped_process_is_woken_to_hear_the_request(work):
    script = work.script("polite.sh",
                         "#!/bin/sh\ntrap 'echo saved; exit 0' TERM\necho $$\nwhile :; do sleep 0.01; done\n",
                         0o755)
    job = work.start("--grace=20", script)
    job.wait_for_log("workerlog.0", "\n")
    os.kill(int(job.log("workerlog.0")), signal.SIGSTOP)
    job.signal(signal.SIGTERM)
    job.finish()
    assert job.status == 143 and job.log("workerlog.0").endswith("saved\n")


def test_nohup_is_respected(work):
    script = work.script("wait.sh", "#!/bin/sh\necho up\nwhile [ ! -e go ]; do sleep 0.01; done\n", 0o755)
    job = work.start(script, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    job.wait_for_log("workerlog.0", "up")
    job.signal(signal.SIGHUP)
    (work.directory / "go").touch()
    assert job.finish().status == 0


def test_children_start_with_default_signals_whatever_fleetrun_inherited(work, python):
    def spoil():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR2])

    job = work.run("/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status", preexec_fn=spoil)
    assert job.status == 0, job.err
    assert [line.split()[1] for line in job.out.splitlines()] == ["0" * 16, "0" * 16]


def test_children_have_no_other_descriptor(work):
    os.set_inheritable(keep := os.open("/dev/null", os.O_RDONLY), True)
    job = work.run("/bin/ls", "/proc/self/fd", close_fds=False)
    os.close(keep)
    assert job.out.split() == ["0", "1", "2", "3"]  # 3 is ls's own


def test_closed_standard_descriptors_do_no_harm(work):
    job = work.run("/bin/echo", "hello", preexec_fn=lambda: (os.close(0), os.close(1)))
    assert job.status == 0 and job.log("workerlog.0") == "hello\n"


def test_no_cgroup_is_left_behind(work):
    job = work.run("/bin/true")
    pod = job.err.split("Run Pod: ")[1].split(",")[0]
    for root, directories, _ in os.walk("/sys/fs/cgroup"):
        assert not [d for d in directories if pod in d], root


def test_the_job_fails_when_a_process_cannot_be_forked(work):
    """A limit on processes below what is needed. It does not bind root, so another user runs it."""
    if os.getuid() != 0:
        pytest.skip("needs root to become a user without other processes")
    work.directory.chmod(0o777)

    def limit():
        import resource

        os.setgid(54321)
        os.setuid(54321)
        resource.setrlimit(resource.RLIMIT_NPROC, (6, 6))

    job = work.run("--nproc_per_node=16", "/bin/sleep", "100", executable=reachable_fleetrun(work),
                   preexec_fn=limit)
    assert job.status == 126 and "could not be started" in job.err and "(fork)" in job.err
    assert not job.survivors()


def test_a_process_that_cannot_be_forked_at_first_is_tried_again(work):
    if not shutil.which("strace"):
        pytest.skip("there is no strace")
    job = work.run("-f", "-o", "calls", "-e", "trace=clone3", "-e", "inject=clone3:error=EAGAIN:when=1..3",
                   find_fleetrun(), "--nproc_per_node=2", "/bin/echo", "x", executable=shutil.which("strace"))
    calls = (work.directory / "calls").read_text()
    if "INJECTED" not in calls:
        pytest.skip(f"processes are not started by clone3, or not traced here: {job.err}")
    assert calls.count("INJECTED") == 3
    assert (job.status, job.out) == (0, "x\n"), job.err
    assert job.log("workerlog.1") == "x\n"


def test_a_reader_that_takes_no_launch_lines_does_not_delay_the_stop(work):
    """Standard error is a pipe that is full once the job runs,
    and nobody reads it until the processes are gone."""
    script = work.script("wait.sh", "#!/bin/sh\necho up\nexec sleep 100\n", 0o755)
    reading, writing = os.pipe()
    job = work.start(script, stderr=writing)
    job.wait_for_log("workerlog.0", "up")
    os.set_blocking(writing, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4096)
    os.close(writing)
    job.signal(signal.SIGTERM)
    wait_until(lambda: not job.survivors(), "the end of the processes")
    with open(reading, "rb") as rest:
        rest.read()
    job.process.communicate()
    assert job.process.returncode == 143


def test_more_processes_than_descriptors_in_the_soft_limit(work):
    import resource

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    job = work.run("--nproc_per_node=150", "/bin/sh", "-c", "ulimit -n", preexec_fn=limit)
    assert job.status == 0, job.err
    assert job.log("workerlog.149") == "64\n"

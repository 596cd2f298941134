"""What holds a pod: fleetrun and fleetrun-init under signals, floods and debuggers, and as pid 1."""

import os
import pathlib
import shutil
import signal
import subprocess
import textwrap
import time

import pytest

from fleetrun_job import clean_environment, find_fleetrun, wait_until


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def init_of(job):
    """fleetrun-init is fleetrun's only child."""
    return wait_until(lambda: children_of(job.process.pid), "fleetrun-init")[0]


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS])
def test_a_crash_of_fleetrun_leaves_nothing_alive(work, number):
    job = work.start("--nproc_per_node=2", "/bin/sh", "-c", "setsid sleep 1000 & echo up; trap '' TERM; wait; wait")
    job.wait_for_log("workerlog.1", "up")
    job.signal(number)
    job.process.wait(10)
    wait_until(lambda: not job.survivors(), "the end of the tree", seconds=1)


def test_processes_go_on_while_fleetrun_is_stopped(work):
    script = 'i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i > count; sleep 0.01; done; exit 0'
    job = work.start("/bin/sh", "-c", script)
    count = work.directory / "count"
    wait_until(count.exists, "the first count")
    job.signal(signal.SIGSTOP)
    wait_until(lambda: state_of(job.process.pid) == "T", "the stop")

    def read():
        return int(count.read_text() or 0)

    before = wait_until(read, "a count")
    wait_until(lambda: read() >= before + 10, "ten more counts")
    (work.directory / "stop").touch()
    wait_until(lambda: len(job.survivors()) == 1, "the end of the process, which init sees")
    job.signal(signal.SIGCONT)
    assert job.finish().status == 0


def test_ten_thousand_zombies_are_reaped(work, python):
    work.script("flood.py", textwrap.dedent("""
        import os, sys
        for _ in range(10):  # a thousand zombies become init's at once
            if os.fork() == 0:
                for _ in range(1000):
                    if os.fork() == 0:
                        os._exit(0)
                os._exit(0)
            os.wait()
        print("flooded", flush=True)
        while not os.path.exists("stop"):
            os.sched_yield()
    """))
    job = work.start("--python", python, "flood.py")
    init = init_of(job)
    job.wait_for_log("workerlog.0", "flooded")
    wait_until(lambda: len(children_of(init)) == 1, "init to have one child only")
    (work.directory / "stop").touch()
    assert job.finish().status == 0


def pids_cgroup(tmp_path, limit):
    """A new cgroup v1 that lets `limit` processes live; None where there is no such thing."""
    top = pathlib.Path("/sys/fs/cgroup/pids")
    if os.geteuid() != 0 or not (top / "tasks").exists():
        return None
    group = top / f"fleetrun-test-{os.getpid()}"
    group.mkdir(exist_ok=True)
    (group / "pids.max").write_text(str(limit))
    return group


def test_a_fork_bomb_is_ended(work, python, tmp_path):
    group = pids_cgroup(tmp_path, 300)
    if group is None:
        pytest.skip("no writable cgroup v1 with the pids controller")
    work.script("bomb.py", textwrap.dedent("""
        import os, signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("up", flush=True)
        while True:
            try:
                os.fork()
            except OSError:
                pass
    """))
    for containment in ("subreaper", "auto"):
        shutil.rmtree(work.directory / "log", ignore_errors=True)
        # Its /bin/sh moves into the cgroup and becomes fleetrun.
        entry = work.script("enter", f'#!/bin/sh\necho $$ > {group}/cgroup.procs\nexec {find_fleetrun()} "$@"\n', 0o755)
        process = subprocess.Popen([entry, "--containment", containment, "--python", python, "bomb.py"],
                                   cwd=work.directory, env=clean_environment(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: len((group / "cgroup.procs").read_text().split()) >= 290, "the bomb to fill its cgroup")
            began = time.monotonic()
            os.kill(process.pid, signal.SIGINT)
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(20) == 130
            assert time.monotonic() - began < 5
            wait_until(lambda: not (group / "cgroup.procs").read_text().split(), "an empty cgroup", seconds=2)
        finally:
            process.kill()
            process.wait()
    group.rmdir()


@pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb")
def test_a_process_under_a_debugger_is_not_dead(work):
    job = work.start("/bin/sh", "-c", "while [ ! -e stop ]; do sleep 0.01; done; exit 0")
    init = init_of(job)
    process = wait_until(lambda: children_of(init), "the process")[0]
    done = subprocess.run(["gdb", "--batch", "-p", str(process), "-ex", "info inferiors", "-ex", "detach"],
                          capture_output=True, text=True, timeout=30)
    assert f"process {process}" in done.stdout, done.stdout + done.stderr
    os.kill(process, signal.SIGSTOP)
    wait_until(lambda: state_of(process) == "T", "the stop")
    assert job.process.poll() is None and children_of(init) == [process]
    os.kill(process, signal.SIGCONT)
    (work.directory / "stop").touch()
    assert job.finish().status == 0


def as_pid_one(*arguments, **popen):
    """A command as pid 1 of a pid namespace; skips the test where that cannot be had."""
    unshare = ["unshare", "--pid", "--fork", "--mount-proc", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
        pytest.skip("no pid namespaces here")
    return subprocess.Popen([*unshare, *map(str, arguments)], env=clean_environment(), **popen)


def test_fleetrun_as_pid_one_has_the_jobs_exit_status(work):
    process = as_pid_one(find_fleetrun(), "/bin/sh", "-c", "exit 5", cwd=work.directory, stderr=subprocess.DEVNULL)
    assert process.wait(20) == 5


def test_fleetrun_as_pid_one_is_stopped_by_a_signal_in_its_first_millisecond(work):
    """A pid 1 loses the signals that come before it blocks or handles them, so the first moment is when it does."""
    process = as_pid_one(find_fleetrun(), "/bin/sleep", "1000", cwd=work.directory, stderr=subprocess.DEVNULL)
    first = wait_until(lambda: children_of(process.pid), "pid 1")[0]

    def takes_sigterm():
        with open(f"/proc/{first}/status") as file:
            masks = dict(line.split(":\t") for line in file if line.startswith("Sig"))
        return int(masks["SigBlk"], 16) >> (signal.SIGTERM - 1) & 1

    wait_until(takes_sigterm, "pid 1 to take signals")
    os.kill(first, signal.SIGTERM)
    assert process.wait(20) == 143


def test_fleetrun_as_pid_one_reaps_what_is_not_its_own(work):
    """What enters the container from outside leaves its orphans to pid 1."""
    process = as_pid_one(find_fleetrun(), "/bin/sh", "-c", "while [ ! -e stop ]; do sleep 0.01; done",
                         cwd=work.directory, stderr=subprocess.DEVNULL)
    first = wait_until(lambda: children_of(process.pid), "pid 1")[0]
    wait_until(lambda: children_of(first), "fleetrun below it")
    enter = ["nsenter", "--target", str(first), "--pid", "--mount", *([] if os.geteuid() == 0 else ["--user"])]
    subprocess.run([*enter, "sh", "-c", "(sleep 0.05 &) ; (true &)"], check=True)
    wait_until(lambda: len(children_of(first)) == 1, "the orphans to be reaped")
    (work.directory / "stop").touch()
    assert process.wait(20) == 0


def test_fleetrun_init_runs_a_command_as_pid_one(work):
    init = next(path for path in (pathlib.Path(find_fleetrun()).with_name("fleetrun-init"),
                                  pathlib.Path(find_fleetrun()).parents[1] / "launcher" / "fleetrun-init") if path.exists())
    assert as_pid_one(init, "--", "/bin/sh", "-c", "exit 7").wait(20) == 7
    assert as_pid_one(init, "--", "/nosuch/program", stderr=subprocess.DEVNULL).wait(20) == 127
    process = as_pid_one(init, "--", "/bin/sh", "-c", "trap 'exit 9' USR1; echo up; while :; do sleep 0.01; done",
                         stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    os.kill(children_of(process.pid)[0], signal.SIGUSR1)
    assert process.wait(20) == 9
    process.stdout.close()

"""What holds a pod: fleetrun and fleetrun-init under signals, floods and debuggers, and as pid 1."""

import contextlib
import ctypes
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import textwrap

import pytest

from fleetrun_job import Job, clean_environment, find_fleetrun, wait_until


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def init_of(job):
    """fleetrun-init is fleetrun's only child."""
    return wait_until(lambda: children_of(job.process.pid), "fleetrun-init")[0]


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS])
def test_a_crash_of_fleetrun_leaves_nothing_alive(work, number):
    job = work.start("--nproc_per_node=2", "/bin/sh", "-c",
                     "setsid sleep 1000 & echo up; trap '' TERM; wait; wait")
    job.wait_for_log("workerlog.1", "up")
    job.signal(number)
    job.process.wait(10)
    wait_until(lambda: not job.survivors(), "the end of the tree")


TALKER = """
import pathlib, time
print("up", flush=True)
while not pathlib.Path("talk").exists():
    time.sleep(0.01)
while True:
    print("x" * 100_000, flush=True)
    time.sleep(0.001)
"""


@pytest.mark.parametrize("locale, says", [
    ("C.UTF-8", "fleetrun: error: there is no memory left\n  hint: raise the limit"),
    ("zh_CN.UTF-8", "fleetrun: 错误：没有可用的内存了\n  提示：提高限制")], ids=["English", "Chinese"])
def test_fleetrun_without_memory_says_so_and_leaves_nothing_alive(work, python, locale, says):
    work.script("talk.py", TALKER)
    job = work.start("--python", python, "--show=all", "--nproc_per_node=2", "talk.py",
                     stdout=subprocess.DEVNULL, environment=clean_environment(LC_ALL=locale))
    job.wait_for_log("workerlog.1", "up")
    resource.prlimit(job.process.pid, resource.RLIMIT_AS, (1 << 20, 1 << 20))
    (work.directory / "talk").touch()
    assert job.finish().status == 125
    assert says in job.err, job.err
    wait_until(lambda: not job.survivors(), "the end of the tree")


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


@pytest.mark.skipif(shutil.which("perl") is None, reason="no perl, whose fork costs least")
def test_ten_thousand_zombies_are_reaped(work):
    # A thousand zombies become init's at once, ten times.
    flood = """for (1..10) { if (!fork) { for (1..1000) { exit if !fork } exit } wait }
               $| = 1; print "flooded\\n"; select(undef, undef, undef, 0.01) until -e "stop";"""
    job = work.start("perl", "-e", flood)
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
        entry = work.script(
            "enter", f'#!/bin/sh\necho $$ > {group}/cgroup.procs\nexec {find_fleetrun()} "$@"\n', 0o755)
        process = subprocess.Popen([entry, "--containment", containment, "--python", python, "bomb.py"],
                                   cwd=work.directory, env=clean_environment(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: len((group / "cgroup.procs").read_text().split()) >= 290,
                       "the bomb to fill its cgroup")
            os.kill(process.pid, signal.SIGINT)
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(20) == 130
            wait_until(lambda: not (group / "cgroup.procs").read_text().split(), "an empty cgroup")
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
    unshare = ["unshare", "--pid", "--fork", "--mount-proc",
               *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
        pytest.skip("no pid namespaces here")
    return subprocess.Popen([*unshare, *map(str, arguments)], env=clean_environment(), **popen)


def test_fleetrun_as_pid_one_has_the_jobs_exit_status(work):
    process = as_pid_one(find_fleetrun(), "/bin/sh", "-c", "exit 5", cwd=work.directory,
                         stderr=subprocess.DEVNULL)
    assert process.wait(20) == 5


def test_fleetrun_as_pid_one_is_stopped_by_a_signal_in_its_first_millisecond(work):
    """A pid 1 loses the signals that come before it blocks or handles them,
    so the first moment is when it does."""
    process = as_pid_one(find_fleetrun(), "/bin/sleep", "1000", cwd=work.directory, stderr=subprocess.DEVNULL)
    first = wait_until(lambda: children_of(process.pid), "pid 1")[0]

    def takes_sigterm():
        with open(f"/proc/{first}/status") as file:
            status = dict(line.split(":\t") for line in file if line.startswith(("Name", "SigBlk")))
        # unshare blocks them too, until shortly before it becomes fleetrun, and what came until then is lost.
        blocked = status["Name"] == "fleetrun\n" and int(status["SigBlk"], 16) >> (signal.SIGTERM - 1) & 1
        return blocked or status["Name"] == "fleetrun-init\n"  # which waits for them

    wait_until(takes_sigterm, "pid 1 to take signals")
    os.kill(first, signal.SIGTERM)
    assert process.wait(20) == 143


def test_fleetrun_as_pid_one_reaps_what_is_not_its_own(work):
    """What enters the container from outside leaves its orphans to pid 1."""
    process = as_pid_one(find_fleetrun(), "/bin/sh", "-c", "while [ ! -e stop ]; do sleep 0.01; done",
                         cwd=work.directory, stderr=subprocess.DEVNULL)
    first = wait_until(lambda: children_of(process.pid), "pid 1")[0]
    wait_until(lambda: children_of(first), "fleetrun below it")
    enter = ["nsenter", "--target", str(first), "--pid", "--mount",
             *([] if os.geteuid() == 0 else ["--user"])]
    subprocess.run([*enter, "sh", "-c", "(sleep 0.05 &) ; (true &)"], check=True)
    wait_until(lambda: len(children_of(first)) == 1, "the orphans to be reaped")
    (work.directory / "stop").touch()
    assert process.wait(20) == 0


def test_fleetrun_init_runs_a_command_as_pid_one(work):
    init = next(path for path in (pathlib.Path(find_fleetrun()).with_name("fleetrun-init"),
                                  pathlib.Path(find_fleetrun()).parents[1] / "launcher" / "fleetrun-init")
                                  if path.exists())
    assert as_pid_one(init, "--", "/bin/sh", "-c", "exit 7").wait(20) == 7
    assert as_pid_one(init, "--", "/nosuch/program", stderr=subprocess.DEVNULL).wait(20) == 127
    process = as_pid_one(init, "--", "/bin/sh", "-c",
                         "trap 'exit 9' USR1; echo up; while :; do sleep 0.01; done",
                         stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    os.kill(children_of(process.pid)[0], signal.SIGUSR1)
    assert process.wait(20) == 9
    process.stdout.close()


def has_pid_namespaces():
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", *user, "true"],
                          capture_output=True).returncode == 0


needs_namespaces = pytest.mark.skipif(not has_pid_namespaces(), reason="no pid namespaces here")


@needs_namespaces
def test_in_a_pid_namespace_nothing_survives_though_fleetrun_and_init_are_killed_at_once(work):
    """The one hole of the lower levels."""
    for _ in range(5):
        shutil.rmtree(work.directory / "log", ignore_errors=True)
        script = ("setsid sh -c 'trap \"\" TERM; sleep 1000; sleep 1000' & (setsid sleep 1000 &) ; "
                  "echo up; exec sleep 1000")
        job = work.start("--containment=pidns", "--nproc_per_node=2", "/bin/sh", "-c", script)
        job.wait_for_log("workerlog.0", "up")
        job.wait_for_log("workerlog.1", "up")
        init = init_of(job)
        for pid in (job.process.pid, init):  # nothing that fleetrun or init could still do lies in between
            os.kill(pid, signal.SIGSTOP)
        for pid in (job.process.pid, init):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not job.survivors(), "the end of the tree")
        left = list(pathlib.Path("/sys/fs/cgroup/unified").glob(f"fleetrun-*-{init}"))
        assert work.run("/bin/true").status == 0
        assert not any(cgroup.exists() for cgroup in left), "the next job removes the empty cgroup"


@needs_namespaces
def test_pids_that_are_shown_are_the_hosts(work):
    job = work.start("--containment=pidns", "/bin/sh", "-c", "echo in $$; exec sleep 1000")
    job.wait_for_log("workerlog.0", "in ")
    process = wait_until(lambda: [pid for pid in job.survivors() if command_of(pid) == b"sleep\x001000\x00"],
                         "the process")[0]
    job.signal(signal.SIGTERM)
    assert job.finish().status == 143
    assert f"waiting up to 30 s for trainer 0 (pid {process})" in job.err
    assert job.log("workerlog.0") != f"in {process}\n"  # inside, pids are the namespace's


@needs_namespaces
@pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb")
def test_a_debugger_on_the_host_finds_a_process_in_a_pid_namespace(work):
    job = work.start("--containment=pidns", "/bin/sh", "-c", "echo up; exec sleep 1000")
    job.wait_for_log("workerlog.0", "up")
    process = wait_until(lambda: [pid for pid in job.survivors() if command_of(pid) == b"sleep\x001000\x00"],
                         "the process")[0]
    done = subprocess.run(["gdb", "--batch", "-p", str(process), "-ex", "info inferiors", "-ex", "detach"],
                          capture_output=True, text=True, timeout=30)
    assert f"process {process}" in done.stdout, done.stdout + done.stderr
    job.signal(signal.SIGTERM)
    assert job.finish().status == 143


@needs_namespaces
def test_a_job_in_a_pid_namespace_may_start_another(work):
    inner = f"{find_fleetrun()} --containment=pidns --log_dir inner --nproc_per_node=2 /bin/sh -c 'exit 6'"
    job = work.run("--containment=pidns", "/bin/sh", "-c", f"{inner}; echo status $?; exit 4")
    assert job.status == 4 and "status 6" in job.log("workerlog.0")


def without_namespaces(work):
    """A command prefix below which the kernel grants no pid namespace."""
    if subprocess.run(["unshare", "--user", "--map-root-user", "true"], capture_output=True).returncode != 0:
        pytest.skip("no user namespaces here")
    entry = work.script("enter", "#!/bin/sh\necho 0 > /proc/sys/user/max_pid_namespaces\nexec \"$@\"\n",
                        0o755)
    return ["unshare", "--user", "--map-root-user", str(entry)]


def test_what_the_kernel_refuses_falls_back_with_a_word_or_fails_when_required(work):
    prefix = without_namespaces(work)

    def run(*flags):
        return subprocess.run([*prefix, find_fleetrun(), *flags, "/bin/sh", "-c", "touch ran; exit 3"],
                              cwd=work.directory,
                              env=clean_environment(), capture_output=True, text=True, timeout=30)

    done = run("--containment=pidns")
    assert done.returncode == 3 and (work.directory / "ran").exists()
    assert "no pid namespace: No space left on device" in done.stderr
    (work.directory / "ran").unlink()
    done = run("--require_containment=pidns")
    assert done.returncode == 125 and not (work.directory / "ran").exists()
    assert "error: containment pidns is required, and only " in done.stderr
    assert "hint: leave out --require_containment" in done.stderr


def test_a_job_runs_in_a_cgroup_in_which_everything_was_killed_before(work):
    """Newer kernels kill what is cloned from such a cgroup into another."""
    group = pathlib.Path(f"/sys/fs/cgroup/unified/fleetrun-test-{os.getpid()}")
    if os.geteuid() != 0 or not group.parent.is_dir():
        pytest.skip("no writable cgroup v2 at its place beside v1")
    group.mkdir()
    (group / "cgroup.kill").write_text("1")
    entry = work.script("enter", f'#!/bin/sh\necho $$ > {group}/cgroup.procs\nexec {find_fleetrun()} "$@"\n',
                        0o755)
    try:
        for containment in ("auto", "cgroup2"):
            done = subprocess.run([entry, "--containment", containment, "/bin/sh", "-c", "exit 3"],
                                  cwd=work.directory,
                                  env=clean_environment(), capture_output=True, text=True, timeout=30)
            assert done.returncode == 3
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text(), "an empty cgroup")
        group.rmdir()


def become_nobody(hides):
    """hides: /proc shows no processes of others from now on."""
    nobody, new_mounts, private = 65534, 0x20000, 0x44000  # of <sched.h>, <sys/mount.h>
    kernel = ctypes.CDLL(None)
    if hides and (kernel.unshare(new_mounts) or kernel.mount(None, b"/", None, private, None)
                  or kernel.mount(b"proc", b"/proc", b"proc", 0, b"hidepid=2")):
        os._exit(77)
    os.setgroups([])
    os.setgid(nobody)
    os.setuid(nobody)


@pytest.mark.skipif(os.geteuid() != 0, reason="a setuid program needs root to be made")
@pytest.mark.skipif("NoNewPrivs:\t1" in pathlib.Path("/proc/self/status").read_text(),
                    reason="setuid programs have no effect under no_new_privs")
@pytest.mark.parametrize("hides, shown", [(False, "setuid_python"), (True, "hidden in /proc")])
def test_a_process_that_may_not_be_killed_is_named_and_not_waited_for(hides, shown):
    """It becomes root's; fleetrun is nobody's."""
    nobody = 65534
    with tempfile.TemporaryDirectory(prefix="fleetrun-", dir="/var/tmp") as name:
        directory = pathlib.Path(name)
        os.chown(directory, nobody, nobody)
        python = shutil.copy(os.path.realpath("/usr/bin/python3"), directory / "setuid_python")
        os.chmod(python, 0o4755)
        become_root = """import os, time
os.setresuid(0, 0, 0)
print("up", os.getpid(), flush=True)
time.sleep(1000)"""
        job = Job(["--grace=0", str(python), "-IS", "-c", become_root], directory, clean_environment(),
                  preexec_fn=lambda: become_nobody(hides))
        try:
            if os.statvfs(directory).f_flag & os.ST_NOSUID:
                pytest.skip("setuid programs have no effect there")
            log = directory / "log" / "workerlog.0"
            wait_until(lambda: job.process.poll() == 77 or log.exists() and log.read_text(), "a process")
            if job.process.returncode == 77:
                pytest.skip("no mount namespaces here")
            culprit = int(job.log("workerlog.0").split()[1])
            job.signal(signal.SIGINT)
            job.finish(30)
        finally:
            for pid in job.survivors():
                with contextlib.suppress(ProcessLookupError):  # fleetrun-init ends with the others
                    os.kill(pid, signal.SIGKILL)
        assert job.status == 125, job.err
        assert f"process {culprit} was killed and does not end: {shown}" in job.err
        assert "no permission: it is another user's now" in job.err


def test_what_a_good_job_leaves_running_is_named_and_killed(work):
    job = work.run("--nproc_per_node=2", "/bin/sh", "-c", "sleep 1000 & echo $! > left.$PADDLE_TRAINER_ID")
    assert job.status == 0 and not job.survivors()
    (warning,) = [line for line in job.err.splitlines() if "left running at its end" in line]
    for rank in "01":
        assert f"sleep 1000 (pid {(work.directory / f'left.{rank}').read_text().strip()})" in warning
    failed = work.run("/bin/sh", "-c", "sleep 1000 & exit 3")
    assert failed.status == 3 and "left running" not in failed.err


def test_what_a_good_job_leaves_may_end_by_itself(work):
    """It begins to end when the script has ended."""
    script = "(while kill -0 $$; do sleep 0.01; done; echo end > written) 2>/dev/null &"
    job = work.run("/bin/sh", "-c", script,
                   environment=clean_environment(FLEETRUN_FAILPOINT="init-leisure=60s"))
    assert job.status == 0 and "left running" not in job.err
    assert (work.directory / "written").read_text() == "end\n"

"""Why a job failed: the first failure, its cause with numbers,
what followed, on the screen and in verdict.json.

Out of memory runs live where cgroup v1 accounts for memory and this user may make groups (so it does on
Debian 12 as root with a hybrid hierarchy). What is read of cgroup v2 is tested with recorded files:
tests/unit/launcher/failure/evidence_test.cc.
"""

import ctypes
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess

import pytest

from fleetrun_job import clean_environment, wait_until

MEMORY = pathlib.Path("/sys/fs/cgroup/memory")
HOG = "block = []\nwhile True:\n    block.append(bytearray(1 << 20))\n"


def verdict_of(work):
    return json.loads((work.directory / "log" / "verdict.json").read_text())


def first_failure(work):
    return verdict_of(work)["first_failure"]


def screen_of(job):
    """What is printed after the last LAUNCH line."""
    return job.err.rpartition("Exit code ")[2].partition("\n")[2]


def compiled(work, name, text, *flags, compiler="g++"):
    """A program, from `text`."""
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    source = work.script(name + ".cc", text)
    program = work.directory / name
    subprocess.run([compiler, "-O1", "-o", program, source, *flags], check=True, cwd=work.directory)
    return program


@pytest.fixture
def limited():
    """A memory group of cgroup v1 with a limit of 64 MiB, below this process's own."""
    own = next((line.split(":", 2)[2] for line in open("/proc/self/cgroup").read().splitlines()
                if ":memory:" in line), None)
    if own is None or not (MEMORY / "memory.oom_control").exists():
        pytest.skip("cgroup v1 does not account for memory here")
    parent = MEMORY / own.lstrip("/")
    group = (parent if parent.exists()
             else MEMORY) / f"fleetrun-test-{os.getpid()}-{random.randrange(1 << 30)}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"a memory group cannot be made: {error}")
    (group / "memory.limit_in_bytes").write_text(str(64 << 20))
    yield group
    wait_until(lambda: not (group / "cgroup.procs").read_text(), "the end of the group's processes")
    group.rmdir()


def enter(group):
    """For a child before it executes: into `group`."""
    return lambda: (group / "cgroup.procs").write_text(str(os.getpid()))


# ------------------------------------------------------------------ what is told


def test_a_traceback_is_named_with_its_exception_and_its_log(work, python):
    work.script("t.py",
                "import os, time\nif os.environ['PADDLE_TRAINER_ID'] == '2':\n"
                "    raise ValueError('bad batch 17')\ntime.sleep(100)\n")
    job = work.run("--python", python, "--nproc_per_node=4", "t.py")
    assert job.status == 1
    assert screen_of(job).startswith("first failure: trainer 2 exited with 1: ValueError: bad batch 17\n")
    assert "log log/workerlog.2" in screen_of(job)
    assert "then 3 others ended with 143 after fleetrun stopped them" in screen_of(job)
    first = first_failure(work)
    assert (first["name"], first["role"], first["rank"],
            first["kind"]) == ("trainer 2", "trainer", 2, "crash")
    assert first["block"] == job.log("workerlog.2")
    assert first["signature"] == "python ValueError: bad batch N @ t.py:<module>"
    verdict = verdict_of(work)
    assert (verdict["outcome"], verdict["exit_status"], verdict["exit_status_of"]) == ("failed", 1, "process")
    assert [(group["text"], group["asked"], len(group["processes"]))
            for group in verdict["cascade"]] == [("ended with 143", True, 3)]


def test_the_block_is_shown_when_the_end_of_the_log_is_something_else(work, python):
    work.script("t.py",
                "import sys\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n"
                "    sys.excepthook(*sys.exc_info())\nfor i in range(60): print('bye', i)\nsys.exit(1)\n")
    job = work.run("--python", python, "--nproc_per_node=1", "t.py")
    assert "  | ZeroDivisionError: division by zero\n" in screen_of(job)
    assert "bye" not in screen_of(job)


def test_a_c_plus_plus_exception_is_named(work):
    program = compiled(work, "throws",
                       '#include <stdexcept>\nint main() { throw std::runtime_error("no rows in part 7"); '
                       '}\n')
    job = work.run("--nproc_per_node=1", program, preexec_fn=without_core)
    assert job.status == 128 + signal.SIGABRT
    assert first_failure(work)["text"] == "was killed by SIGABRT: std::runtime_error: no rows in part 7"


def without_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def test_a_library_that_is_missing_is_named(work):
    library = compiled(work, "libgone.so", "int answer() { return 42; }\n", "-shared", "-fPIC")
    program = compiled(work, "needs", "int answer();\nint main() { return answer(); }\n", library,
                       "-Wl,-rpath,.")
    library.unlink()
    job = work.run("--nproc_per_node=1", program)
    assert job.status == 127
    first = first_failure(work)
    assert "libgone.so: cannot open shared object file" in first["text"]
    assert "LD_LIBRARY_PATH" in first["hint"] and "hint: install the library" in screen_of(job)


def test_a_program_that_cannot_be_started_is_no_crash(work):
    script = work.script("script", "#!/no/such/interpreter\n", 0o755)
    job = work.run("--nproc_per_node=2", "--max_restart=3", script)
    first = first_failure(work)
    assert job.status == 127 and first["kind"] == "not_started" and "interpreter" in first["hint"]
    assert verdict_of(work)["exit_status_of"] == "fleetrun"
    assert verdict_of(work)["restarts"] == 0


def test_a_port_that_is_taken_has_a_hint(work, python):
    work.script("t.py", "import errno\nraise OSError(errno.EADDRINUSE, 'Address already in use')\n")
    work.run("--python", python, "--nproc_per_node=1", "t.py")
    assert "another program has the port" in first_failure(work)["hint"]


def test_a_segmentation_fault_tells_where_the_core_is(work, python):
    work.script("t.py", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    job = work.run("--python", python, "--nproc_per_node=1", "t.py", preexec_fn=with_core)
    assert job.status == 128 + signal.SIGSEGV
    first = first_failure(work)
    assert first["text"].startswith("was killed by SIGSEGV")
    if "(core dumped)" not in first["text"]:
        pytest.skip("no core was dumped here")
    if pattern.startswith("|"):
        assert "core: handed to /" in first["detail"]
    elif not pattern.startswith("/"):
        core = re.search("core: (.+)\n", first["detail"]).group(1)
        assert pathlib.Path(core).parent == work.directory and pathlib.Path(core).exists()


def with_core():
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def test_a_file_that_grows_beyond_its_limit_is_told(work):
    script = work.script("t.sh", "#!/bin/sh\nulimit -f 8\nexec dd if=/dev/zero of=big bs=1024 count=100\n",
                         0o755)
    job = work.run("--nproc_per_node=1", script, preexec_fn=without_core)
    assert job.status == 128 + signal.SIGXFSZ
    assert "a file grew beyond the limit (one that it set itself)" in first_failure(work)["text"]


def test_a_log_that_may_not_grow_any_more_is_told(work, python):
    """Python ignores SIGXFSZ: its last words meet EFBIG, and are lost."""
    work.script("fails.py", "print('x' * 10_000)\nraise ValueError('seven')\n")
    job = work.run(python, "fails.py",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    told = first_failure(work)["text"]
    assert job.status == 1 and "the limit of a file's size (log/workerlog.0, 4.0 KiB, ulimit -f)" in told
    assert "hint: raise the limit (ulimit -f), or keep logs small with --log_cap" in job.err


# ------------------------------------------------------------------ memory


def test_out_of_memory_is_told_with_its_numbers(work, python, limited):
    """Trainer 1 grows when the other one asks for no memory any more: the kernel may kill two at once."""
    work.script("t.py", "import os, time\nif os.environ['PADDLE_TRAINER_ID'] == '1':\n"
                "    while not os.path.exists('up'):\n        time.sleep(0.01)\n    " +
                HOG.replace("\n", "\n    ").rstrip() + "\nopen('up', 'w').close()\ntime.sleep(100)\n")
    job = work.run("--python", python, "--nproc_per_node=2", "t.py", preexec_fn=enter(limited))
    assert job.status == 128 + signal.SIGKILL
    first = first_failure(work)
    assert (first["name"], first["kind"]) == ("trainer 1", "oom")
    numbers = (r"out of memory, cgroup \S+/fleetrun-test-\S+: limit 64\.0 MiB, peak 64\.0 MiB, "
               r"in use [\d.]+ [KM]iB")
    assert re.search("was killed by SIGKILL: " + numbers, first["text"]), first["text"]
    assert re.search("first failure: trainer 1 was killed by SIGKILL: " + numbers, screen_of(job))
    assert re.search(r"most memory that it had: [3-6]\d\.\d MiB", first["detail"])
    assert "out-of-memory kills counted: 1 in its cgroup" in first["detail"]
    assert "raise that limit" in first["hint"]


@pytest.mark.parametrize("more", [[], ["--log_through"]])
def test_the_words_of_sys_exit_are_in_the_headline(work, python, more):
    work.script("t.py", "import os, sys, time\nprint('step 1')\n"
                "if os.environ['PADDLE_TRAINER_ID'] == '1':\n    sys.exit('day 7 has no rows')\n"
                "time.sleep(100)\n")
    job = work.run("--python", python, "--nproc_per_node=2", *more, "t.py")
    assert job.status == 1
    assert screen_of(job).startswith(
        "first failure: trainer 1 exited with 1; its last line: day 7 has no rows\n")


def test_a_process_that_ran_out_of_address_space_is_told_with_its_limit(work, python):
    work.script("t.py", "bytearray(1 << 30)\n")
    job = work.run("--python", python, "--nproc_per_node=1", "t.py",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (512 << 20,) * 2))
    first = first_failure(work)
    assert job.status == 1 and first["text"] == "exited with 1: MemoryError" and first["kind"] == "crash"
    assert "its limit of address space is 512.0 MiB (ulimit -v)" in first["detail"]


def test_a_process_that_moved_to_a_group_of_its_own_is_judged_by_that(work, python, limited):
    """Its growth takes a second or two, in which fleetrun looks where it lives."""
    work.script("t.py",
                f"import os, time\nopen('{limited}/cgroup.procs', 'w').write(str(os.getpid()))\nblock = []\n"
                "while True:\n    block.append(bytearray(1 << 20))\n    time.sleep(0.025)\n")
    job = work.run("--python", python, "--nproc_per_node=1", "t.py")
    assert job.status == 128 + signal.SIGKILL
    first = first_failure(work)
    assert (first["kind"] == "oom" and f"/{limited.name}: limit 64.0 MiB, peak 64.0 MiB" in
            first["text"]), first


def test_a_sigkill_from_elsewhere_is_not_called_out_of_memory(work, limited):
    job = work.start("--nproc_per_node=2", "/bin/sh", "-c",
                     "echo $$ > pid.$PADDLE_TRAINER_ID; exec sleep 100", preexec_fn=enter(limited))
    file = work.directory / "pid.1"
    pid = wait_until(lambda: file.exists() and file.read_text().strip(), "the process")
    pids = ([int(found) for found in job.survivors() if argv_of(found) == ["sleep", "100"]
             and rank_of(found) == "1"] or [int(pid)])
    os.kill(pids[0], signal.SIGKILL)
    assert job.finish().status == 128 + signal.SIGKILL
    first = first_failure(work)
    assert (first["name"], first["kind"]) == ("trainer 1", "crash")
    assert (first["text"] ==
            "was killed by SIGKILL, sender unknown; memory was not the reason: "
            "no out-of-memory kill was counted")


def argv_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except OSError:
        return []


def rank_of(pid):
    try:
        variables = pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0")
    except OSError:
        return None
    return next((text.partition("=")[2] for text in variables if text.startswith("PADDLE_TRAINER_ID=")), None)


def test_one_killed_by_the_kernel_and_one_by_hand_are_told_apart(work, python, limited):
    """Attempt 0 runs out of memory; in attempt 1 somebody sends SIGKILL.
    One counted kill explains one death."""
    work.script("t.py", "import os, signal\nif os.environ['FLEETRUN_ATTEMPT'] == '0':\n    " +
                HOG.replace("\n", "\n    ").rstrip() +
                "\nos.kill(os.getpid(), signal.SIGKILL)\n")
    job = work.run("--python", python, "--nproc_per_node=1", "--max_restart=1", "t.py",
                   preexec_fn=enter(limited))
    assert job.status == 128 + signal.SIGKILL
    attempts = verdict_of(work)["attempts"]
    assert [attempt["kind"] for attempt in attempts][:2] == ["oom", "crash"]
    assert "attempt 0: trainer 0 was killed by SIGKILL: out of memory" in screen_of(job)


def test_sigbus_with_a_full_dev_shm_says_so(work, python):
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small /dev/shm")
    work.script("t.py",
                "import mmap\nfile = open('/dev/shm/part', 'w+b')\nfile.truncate(1 << 20)\n"
                "map = mmap.mmap(file.fileno(), 1 << 20)\n"
                "for i in range(0, 1 << 20, 4096): map[i] = 1\n")
    job = work.run("--python", python, "--nproc_per_node=1", "t.py", preexec_fn=with_small_shm)
    if job.status != 128 + signal.SIGBUS:
        pytest.skip("a mount namespace of its own is not allowed here")
    first = first_failure(work)
    assert first["text"].endswith(": /dev/shm is full, 0 B of 256.0 KiB free")
    assert "--shm-size" in first["hint"]


def with_small_shm():
    """A mount namespace of its own with a /dev/shm of 256 KiB."""
    without_core()
    libc = ctypes.CDLL(None)
    new_namespace, recursive, private = 0x20000, 0x4000, 1 << 18
    if libc.unshare(new_namespace) == 0 and libc.mount(b"none", b"/", None, recursive | private, None) == 0:
        libc.mount(b"none", b"/dev/shm", b"tmpfs", 0, b"size=256k")


# ------------------------------------------------------------------ who was first


def test_of_a_hundred_deaths_that_init_sees_at_once_the_first_is_named(work):
    """While fleetrun-init is stopped, a hundred processes die in a shuffled order.
    It then sees them all in one turn."""
    job = work.start("--nproc_per_node=100", "--containment=subreaper", "/bin/sleep", "1000")
    sleeping = wait_until(lambda: len(found := {p: rank_of(p) for p in job.survivors()
                                                if argv_of(p) == ["/bin/sleep", "1000"]}) == 100 and found,
                          "a hundred processes")
    init = next(pid for pid in job.survivors() if argv_of(pid)[0].endswith("fleetrun-init"))
    order = list(sleeping)
    random.Random(4).shuffle(order)
    os.kill(init, signal.SIGSTOP)
    wait_until(lambda: state_of(init) == "T", "init to stop")
    for pid in order:
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: state_of(pid) == "Z", "the death")
    os.kill(init, signal.SIGCONT)
    assert job.finish().status == 128 + signal.SIGKILL
    assert f"first failure: trainer {sleeping[order[0]]} was killed by SIGKILL" in job.err
    events = [json.loads(line) for path in work.directory.glob("log/*/events.jsonl")
              for line in path.read_text().splitlines()]
    ended = [event["rank"] for event in events if event["type"] == "process_exited"]
    if events:
        assert ended == [int(sleeping[pid]) for pid in order]


def state_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def test_the_one_that_raised_is_named_although_a_peer_that_lost_it_dies_first(work, python):
    """Rank 1 sees the end of the connection and dies of it,
    and only then does rank 0 end, which has raised."""
    work.script("t.py", """
import atexit, os, select, socket, time
if os.environ["PADDLE_TRAINER_ID"] == "0":
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("hub.new")
    listener.listen()
    os.rename("hub.new", "hub")
    with listener.accept()[0] as peer:
        other = os.pidfd_open(int(peer.recv(20)))
        atexit.register(lambda: select.select([other], [], []))  # until rank 1 is dead
        raise KeyError("weight")
peer = socket.socket(socket.AF_UNIX)
while True:
    try:
        peer.connect("hub")
        break
    except OSError:
        time.sleep(0.01)
peer.send(str(os.getpid()).encode())
if not peer.recv(1):
    raise ConnectionResetError(104, "Connection reset by peer")
""")
    job = work.run("--python", python, "--nproc_per_node=2", "t.py")
    assert job.status == 1
    first = first_failure(work)
    assert (first["name"], first["text"]) == ("trainer 0", "exited with 1: KeyError: 'weight'")
    assert re.search(r"before it, being quicker to die, trainer 1, [\d.]+ ms earlier: exited with 1",
                     screen_of(job))


# ------------------------------------------------------------------ statuses


def test_every_exit_code_comes_through(work):
    for code in range(256):
        job = work.run("--nproc_per_node=1", "--log_level=CRITICAL", "/bin/sh", "-c", f"exit {code}")
        assert job.status == code
    assert job.survivors() == set()


def test_every_signal_comes_through(work):
    stopping = {signal.SIGCHLD, signal.SIGCONT, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN,
                signal.SIGTTOU, signal.SIGURG, signal.SIGWINCH}
    for number in sorted(set(range(1, 65)) - {int(s) for s in stopping}):
        job = work.run("--nproc_per_node=1", "--log_level=CRITICAL", "/bin/sh", "-c",
                       f"kill -{number} $$; sleep 100", preexec_fn=without_core)
        assert job.status == 128 + number
        assert first_failure(work)["text"].startswith("was killed by ")


def test_a_signal_that_fleetrun_injected_is_told_as_its_own(work):
    work.run("--nproc_per_node=2", "--inject", "kill rank=1 at=0.1s", "/bin/sleep", "1000")
    first = first_failure(work)
    assert (first["name"], first["text"]) == ("trainer 1", "was killed by SIGKILL, sent by fleetrun")
    assert "injected before: SIGKILL to trainer 1" in first["detail"]


def test_a_sigterm_from_elsewhere_and_exit_code_75_are_preemptions(work):
    work.run("--nproc_per_node=1", "/bin/sh", "-c", "kill -TERM $$")
    assert first_failure(work)["kind"] == "preemption"
    assert work.run("--nproc_per_node=1", "/bin/sh", "-c", "exit 75").status == 75
    assert first_failure(work)["kind"] == "preemption"


# ------------------------------------------------------------------ the verdict


def test_every_outcome_has_a_verdict(work):
    assert work.run("--nproc_per_node=2", "/bin/true").status == 0
    verdict = verdict_of(work)
    assert (verdict["schema"], verdict["outcome"], verdict["exit_status"],
            verdict["first_failure"]) == (1, "completed", 0, None)
    job = work.start("--nproc_per_node=1", "/bin/sleep", "1000")
    wait_until(lambda: any(argv_of(pid) == ["/bin/sleep", "1000"] for pid in job.survivors()), "the process")
    job.signal(signal.SIGINT)
    assert job.finish().status == 130
    verdict = verdict_of(work)
    assert (verdict["outcome"], verdict["exit_status"],
            verdict["exit_status_of"]) == ("stopped", 130, "fleetrun")
    assert work.run("--nproc_per_node=1", "--timeout=0.2", "/bin/sleep", "1000").status == 124
    assert verdict_of(work)["outcome"] == "timed_out"


def test_each_pod_keeps_its_verdict_for_its_owner_alone(work):
    for _ in range(2):
        work.run("--nproc_per_node=1", "/bin/true")
    newest, *others = [work.directory / "log" / "verdict.json", *work.directory.glob("log/*/verdict.json")]
    assert len(others) == 2 and any(newest.samefile(path) for path in others)
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in [newest, *others])
    assert not list(work.directory.glob("log/**/.verdict*"))


def test_a_verdict_that_cannot_be_written_is_one_warning(work):
    (work.directory / "log" / "verdict.json").mkdir(parents=True)
    job = work.run("--nproc_per_node=1", "/bin/true")
    assert job.status == 0
    assert job.err.count("verdict.json was not written") == 1


def test_a_critical_log_level_silences_the_screen(work):
    job = work.run("--nproc_per_node=1", "--log_level=CRITICAL", "/bin/false",
                   environment=clean_environment())
    assert job.status == 1 and "first failure" not in job.err

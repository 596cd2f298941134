"""Jobs that hang (--hang_timeout): who is named, what is shown, and what becomes of the job.

Timeouts are short, and no test asserts one. The workers are Python programs that write to the descriptor
themselves, as a program in any language would.
"""

import json
import shutil
import signal

import pytest

from fleetrun_job import ROOT, clean_environment, wait_until

WORKER = """
import ctypes, os, pathlib, sys, threading, time
rank, attempt = int(os.environ["FLEETRUN_RANK"]), int(os.environ["FLEETRUN_ATTEMPT"])
heartbeat = int(os.environ["FLEETRUN_HEARTBEAT_FD"])
def beat(text="beat"):
    try:
        os.write(heartbeat, text.encode() + b"\\n")
    except BlockingIOError:
        pass
def beat_until(path):
    while not pathlib.Path(path).exists():
        beat()
        time.sleep(0.01)
def wait_for_others():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
def load():
    time.sleep(86400)
"""


@pytest.fixture
def no_tools(tmp_path):
    """An environment in which neither gdb nor py-spy is found."""
    (tmp_path / "empty").mkdir()
    return clean_environment(PATH=str(tmp_path / "empty"))


def start(work, python, script, *flags, environment, size=2, **popen):
    work.script("job.py", WORKER + script)
    return work.start(f"--nproc_per_node={size}", f"--python={python}", "--log_level=warning", "--grace=1",
                      *flags, "job.py",
                      environment=environment, **popen)


def test_the_one_that_others_wait_for_is_named_and_the_job_ends(work, python, no_tools):
    script = "beat('step 7')\nload() if rank == 2 else wait_for_others()\n"
    job = start(work, python, script, "--hang_timeout=1.5", environment=no_tools, size=4).finish()
    assert job.status == 137
    lines = job.err.splitlines()
    report = lines[next(i for i, line in enumerate(lines) if "the job hangs: trainer 2 (" in line) :]
    assert report[1].startswith("trainer 2 sent no heartbeat for ") and report[1].endswith("(step 7 was its "
                                                                                           "last)")
    assert "3 trainers (0,1,3):" in report and "trainer 2, not where the others are:" in report
    place = report.index("trainer 2, not where the others are:")
    assert report[place + 1].startswith("    load (job.py:"), report
    shown = next(line for line in report if line.startswith("all threads: ")).removeprefix("all threads: ")
    text = (work.directory / shown).read_text()
    assert all(f"trainer {rank}: pid " in text for rank in range(4))
    assert (work.directory / shown).stat().st_mode & 0o777 == 0o600
    verdict = json.loads((work.directory / "log" / "verdict.json").read_text())["first_failure"]
    assert verdict["name"] == "trainer 2" and verdict["kind"] == "hang"
    assert verdict["text"].startswith("hung (it sent no heartbeat for ")
    events = (work.directory / shown).parents[1] / "events.jsonl"
    hang = next(event for event in map(json.loads, events.read_text().splitlines())
                if event["type"] == "hang_found")
    assert hang["culprits"] == ["trainer 2"] and "trainer 2" in hang["silent"]
    assert not job.survivors()


@pytest.mark.skipif(not shutil.which("gdb", path="/usr/bin:/bin"), reason="gdb is not installed")
def test_gdb_is_used_where_it_is(work):
    work.script("job.sh", "#!/bin/sh\nexec sleep 8640$FLEETRUN_RANK\n", 0o755)
    job = work.start("--nproc_per_node=2", "--log_level=warning", "--grace=1", "--hang_timeout=1.5",
                     "./job.sh", environment=clean_environment(PATH="/usr/bin:/bin")).finish()
    assert job.status == 137
    assert "2 trainers (0,1):\n" in job.err and "    clock_nanosleep" in job.err
    assert not job.survivors()


def test_a_tool_in_path_is_asked_for_the_frames_of_python(work, python, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    spy = tools / "py-spy"
    spy.write_text("#!/bin/sh\n[ \"$1 $2 $3\" = 'dump --nonblocking --pid' ] || exit 1\n"
                   "echo 'Thread 1 (idle): \"MainThread\"'\necho '    all_reduce (train.py:40)'\n")
    spy.chmod(0o755)
    environment = clean_environment(PATH=f"{tools}:/usr/bin:/bin")
    job = start(work, python, "beat()\nwait_for_others()\n", "--hang_timeout=1.5",
                environment=environment).finish()
    assert job.status == 137
    assert "2 trainers (0,1):\n    all_reduce (train.py:40)\n" in job.err


def test_a_hang_is_ended_and_the_group_started_again(work, python, no_tools):
    script = ("beat()\nprint('attempt', attempt, flush=True)\nif attempt == 0:\n"
              "    load() if rank else beat_until('never')\n")
    job = start(work, python, script, "--hang_timeout=1.5", "--max_restart=1", environment=no_tools).finish()
    assert job.status == 0, job.err
    assert "the job hangs: trainer 1 (" in job.err
    assert "attempt 1 (hang, restart 1 of 1)" in job.err
    assert job.log("workerlog.1") == "attempt 1\n"
    assert not job.survivors()


def test_a_stopped_worker_hangs_and_is_said_to_be_stopped(work, python, no_tools):
    script = ("for step in range(1000000):\n    beat(f'step {step}')\n    time.sleep(0.01)\n"
              "    if attempt: break\n")
    job = start(work, python, script, "--hang_timeout=1.5", "--max_restart=1",
                "--inject=stop rank=1 at=step:5",
                environment=no_tools).finish()
    assert job.status == 0, job.err
    assert "injected: SIGSTOP to trainer 1 at step 5 of attempt 0" in job.err
    assert "trainer 1 has been stopped by a signal for " in job.err


@pytest.mark.parametrize(
    "script",
    [
        # never a heartbeat: by its log and processor time
        "lock = threading.Lock()\nlock.acquire()\nlock.acquire()\n",
        # A thread beats, and the main thread keeps the interpreter's lock:
        # ctypes.PyDLL does not give it back.
        "begun = threading.Event()\ndef run():\n    beat()\n    begun.set()\n    beat_until('never')\n"
        "threading.Thread(target=run, daemon=True).start()\nbegun.wait()\n"
        "ctypes.PyDLL(None).sleep(86400)\n",
        "beat()\nos.kill(os.getpid(), 19)\n",
    ],
    ids=["deadlock", "interpreter lock", "stopped by itself"],
)
def test_each_way_to_hang_is_found(work, python, no_tools, script):
    job = start(work, python, "if rank == 0:\n    beat_until('never')\n" + script, "--hang_timeout=1.5",
                environment=no_tools).finish()
    assert job.status == 137
    assert "the job hangs: trainer 1 (" in job.err and "trainer 0 " not in job.err
    assert not job.survivors()


def test_a_worker_does_not_block_when_fleetrun_does_not_read(work, python, no_tools):
    script = (
        "pathlib.Path(f'ready{rank}').touch()\nbeat_until('go')\nfor i in range(200000):\n"
        "    beat('step 123456')\n"
              "pathlib.Path(f'through{rank}').touch()\nbeat_until('end')\n")
    job = start(work, python, script, "--hang_timeout=60", environment=no_tools)

    def wait_for_both(name):
        wait_until(lambda: all((work.directory / f"{name}{rank}").exists() for rank in (0, 1)),
                   f"{name}, both workers")

    wait_for_both("ready")
    job.signal(signal.SIGSTOP)
    (work.directory / "go").touch()
    wait_for_both("through")
    job.signal(signal.SIGCONT)
    (work.directory / "end").touch()
    assert job.finish().status == 0, job.err


def test_a_pause_of_fleetrun_itself_is_nobodys_hang(work, python, no_tools):
    script = (
        "count = 0\nwhile not pathlib.Path('end').exists():\n    beat()\n    time.sleep(0.01)\n"
        "    count += 1\n"
              "    pathlib.Path(f'count{rank}').write_text(str(count))\n")
    job = start(work, python, script, "--hang_timeout=1.5", environment=no_tools)
    counts = [work.directory / "count0", work.directory / "count1"]

    def count_up_to(number):
        wait_until(lambda: all(path.exists() and int(path.read_text() or 0) >= number for path in counts),
                   f"{number} beats")

    count_up_to(10)
    job.signal(signal.SIGSTOP)
    count_up_to(260)  # longer than the timeout
    job.signal(signal.SIGCONT)
    count_up_to(270)
    (work.directory / "end").touch()
    assert job.finish().status == 0, job.err
    assert "hangs" not in job.err


def test_a_slow_worker_is_told_about_and_left_alone(work, python, no_tools, tmp_path):
    script = (
        "step = 0\nwhile not pathlib.Path('end').exists():\n    step += 1\n"
        "    beat(f'step {step} {0.9 if rank == 2 else 0.1}')\n"
              "    time.sleep(0.01)\n")
    told = tmp_path / "told"
    with told.open("w") as output:
        job = start(work, python, script, "--hang_timeout=2", environment=no_tools, size=3, stderr=output)
    wait_until(lambda: "is slow" in told.read_text(), "a warning")
    (work.directory / "end").touch()
    assert job.process.wait(30) == 0
    assert told.read_text().count("trainer 2 is slow: 0.9 s a step, the others 0.1 s") == 1


def test_the_python_package_beats(work, python, no_tools):
    script = (
        "import fleetrun\nfleetrun.heartbeat(41)\n"
        "fleetrun.heartbeat(42)  # too soon after the other: left out\n"
              "load() if rank else beat_until('never')\n")
    environment = {**no_tools, "PYTHONPATH": str(ROOT / "runtime" / "python")}
    job = start(work, python, script, "--hang_timeout=1.5", environment=environment).finish()
    assert job.status == 137
    assert "trainer 1 sent no heartbeat for " in job.err and "(step 41 was its last)" in job.err


def test_the_python_package_says_nothing_where_nobody_listens(work, python, tmp_path):
    script = work.script("quiet.py", """
import os, subprocess, sys
import fleetrun
assert fleetrun.heartbeat(1) is None
other = open("file", "w")
os.set_inheritable(other.fileno(), True)
os.environ["FLEETRUN_HEARTBEAT_FD"] = str(other.fileno())
code = "import fleetrun, os; fleetrun.heartbeat(1); assert os.path.getsize('file') == 0"
subprocess.run([sys.executable, "-c", code], close_fds=False, check=True)  # the number is a file of the program's
subprocess.run([sys.executable, "-c", code], check=True)  # the number is nothing
for wrong in ("", "x", "-1", "99999999999999999999"):
    os.environ["FLEETRUN_HEARTBEAT_FD"] = wrong
    subprocess.run([sys.executable, "-c", code], check=True)
""")
    environment = clean_environment(PYTHONPATH=str(ROOT / "runtime" / "python"))
    job = work.run(f"--python={python}", script, environment=environment)
    assert job.status == 0, job.err + job.log("workerlog.0")


def test_without_being_asked_for_there_is_no_heartbeat(work):
    environment = clean_environment(FLEETRUN_HEARTBEAT_FD="3")
    job = work.run("--max_restart=0", "/bin/sh", "-c", "echo \"[$FLEETRUN_HEARTBEAT_FD]\"",
                   environment=environment)
    assert job.status == 0 and job.log("workerlog.0") == "[]\n"


def test_a_shell_script_beats_with_echo(work, no_tools):
    script = work.script("beat.sh",
                         "for i in 1 2 3; do echo step $i >&$FLEETRUN_HEARTBEAT_FD || exit 9; done\n"
                         "[ $FLEETRUN_ATTEMPT = 1 ] || kill -STOP $$\n")
    job = work.run("--hang_timeout=1", "--max_restart=1", "--grace=1", "--log_level=warning", "/bin/sh",
                   script, environment=no_tools)
    assert job.status == 0, job.err
    assert "(step 3 was its last)" in job.err


def test_servers_that_wait_do_not_hang(work, python, no_tools):
    script = work.script("ps.py", """
import os, socket, time
if os.environ["FLEETRUN_ROLE"] == "server":
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("127.0.0.1", int(os.environ["PADDLE_PORT"])))
    listener.listen()
    time.sleep(86400)
for i in range(250):
    os.write(int(os.environ["FLEETRUN_HEARTBEAT_FD"]), b"beat\\n")
    time.sleep(0.01)
""")
    job = work.run("--server_num=1", "--trainer_num=1", f"--python={python}", "--hang_timeout=1", "--grace=1",
                   script, environment=no_tools)
    assert job.status == 0, job.err
    assert "hangs" not in job.err

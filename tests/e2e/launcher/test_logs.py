"""What the terminal shows of the logs, and what the logs say afterwards."""

import array
import fcntl
import os
import re
import select
import shutil
import signal
import subprocess
import termios

import pytest
from fleetrun_job import Job, clean_environment, find_fleetrun, small_file_system, wait_until

TALK = """#!/bin/sh
echo "I am $TRAINING_ROLE ${PADDLE_TRAINER_ID:-$PADDLE_PORT}"
[ "$PADDLE_TRAINER_ID" != 1 ] || { until [ -s log/workerlog.0 ]; do sleep 0.01; done; printf 'it broke\\nno newline'; exit 3; }
[ "$TRAINING_ROLE" = TRAINER ] || exec sleep 100
"""
SHOWN = {
    "first": "I am TRAINER 0\n",
    "none": "",
    "0": "trainer 0 | I am TRAINER 0\n",
    "fail": "trainer 1 | I am TRAINER 1\ntrainer 1 | it broke\ntrainer 1 | no newline\n",
    "1,0":
    "trainer 0 | I am TRAINER 0\ntrainer 1 | I am TRAINER 1\ntrainer 1 | it broke\ntrainer 1 | no newline\n",
}


@pytest.mark.parametrize("choice", SHOWN)
def test_show(work, choice):
    script = work.script("talk.sh", TALK, 0o755)
    job = work.run("--server_num=1", "--trainer_num=2", f"--show={choice}", "--ready_timeout=0", script)
    assert job.status == 3
    assert sorted(job.out.splitlines()) == sorted(SHOWN[choice].splitlines())
    assert job.log("workerlog.1") == "I am TRAINER 1\nit broke\nno newline"


def test_names_are_aligned_and_coloured_when_asked(work):
    job = work.run("--server_num=1", "--trainer_num=1", "--show=all", "--color=always", "/bin/echo", "hello")
    assert job.status == 0, job.err
    assert sorted(job.out.splitlines()) == ["\x1b[33mtrainer 0\x1b[0m | hello",
                                            "\x1b[36mserver 0 \x1b[0m | hello"]


@pytest.mark.parametrize(
    "flags, says",
    [
        (["--show=1.5"], "'1.5' is not a rank"),
        (["--show=7"], "--show names trainer 7, and there are 1 of them"),
        (["--show=driver"], "driver"),
        (["--color=blue"], "--color is 'blue'"),
    ],
)
def test_choices_that_are_none(work, flags, says):
    job = work.run(*flags, "/bin/true")
    assert job.status == 125 and says in job.err, job.err
    assert not (work.directory / "log").exists()


@pytest.mark.parametrize("choice", ["first", "all"])
def test_a_reader_that_leaves_or_sleeps_costs_the_processes_nothing(work, choice):
    asleep = 'until [ "$(stat -c %s log/workerlog.1 2>/dev/null)" = 3000000 ]; do sleep 0.01; done'
    for reader in ("head -1", f"{{ {asleep}; }}"):
        shutil.rmtree(work.directory / "log", ignore_errors=True)
        line = (f"{find_fleetrun()} --show={choice} --log_level=ERROR --nproc_per_node=2 /bin/sh -c 'yes | "
                f"head -c 3000000' | {reader}")
        shell = ["/bin/bash", "-o", "pipefail", "-c", line]
        result = subprocess.run(shell, cwd=work.directory, env=clean_environment(), capture_output=True,
                                timeout=30)
        assert result.returncode == 0, result.stderr
        assert (work.directory / "log" / "workerlog.1").stat().st_size == 3000000


def test_logs_of_a_past_job(work):
    for word in ("first", "second"):
        job = work.run("--server_num=1", "--trainer_num=2", f"--job_id={word}", "--show=none", "/bin/echo",
                       word)
        assert job.status == 0, job.err
    assert work.run("logs").out == "server 0  | second\ntrainer 0 | second\ntrainer 1 | second\n"
    assert work.run("logs", "first", "--role", "trainer").out == "trainer 0 | first\ntrainer 1 | first\n"
    assert work.run("logs", "-r1", "-n", "1", "--log-dir=log").out == "second\n"
    newest = work.run("logs").out
    for path in ("log", "log/", "./log/workerlog.0"):
        assert work.run("logs", path).out == newest
    first = next((work.directory / "log").glob("first.*.trainer.0.log")).name.split(".")[1]
    for path in (f"log/{first}", f"log/{first}/", f"log/{first}/0", f"{work.directory}/log/{first}"):
        assert work.run("logs", "-r0", "--role=trainer", path).out == "first\n"
    for words, says in (
        (["logs", "third"], "there are no logs of job third in log"),
        (["logs", "--rank=9"], "there is no log of that role, rank or attempt in log/"),
        (["logs", "--rank=x"], "--rank is 'x'"),
        (["logs", "a", "b"], "logs shows one job, and 2 are named"),
        (["logs", "--folow"], "unknown flag --folow of logs"),
        (["logs", "--log_dir=elsewhere"], "there are no logs in elsewhere"),
    ):
        job = work.run(*words)
        assert job.status == 125 and says in job.err, job.err
    (work.directory / "log").rename(work.directory / "h2")
    (work.directory / "log").mkdir()
    (work.directory / "h2").rename(work.directory / "log" / "h2")  # as a job over hosts leaves it
    assert "each host has its own, for example --log_dir=log/h2" in work.run("logs").err
    assert "--follow" in work.run("logs", "--help").out


def test_logs_that_cannot_be_written_are_an_error_and_a_reader_that_left_is_none(work):
    assert work.run("--nproc_per_node=1", "--show=none", "/bin/echo", "word").status == 0
    with open("/dev/full", "wb") as full:
        job = work.run("logs", stdout=full)
    assert job.status == 125 and "standard output cannot be written" in job.err
    reader, writer = os.pipe()
    os.close(reader)
    job = work.run("logs", stdout=writer)
    os.close(writer)
    assert job.status in (0, -signal.SIGPIPE) and job.err == ""


def test_logs_wait_for_a_reader_that_is_slow(work):
    work.run("--show=none", "/bin/sh", "-c", "yes | head -c 300000")
    with subprocess.Popen([find_fleetrun(), "logs"], cwd=work.directory, env=clean_environment(),
                          stdout=subprocess.PIPE) as logs:
        most = fcntl.fcntl(logs.stdout, fcntl.F_GETPIPE_SZ)

        def is_full():
            held = array.array("i", [0])
            fcntl.ioctl(logs.stdout, termios.FIONREAD, held)
            return held[0] > most - select.PIPE_BUF

        wait_until(is_full, "a pipe that takes no more")
        assert len(logs.stdout.read()) == 300000


CHATTER = """#!/bin/sh
i=0
while [ $i -lt 3000 ]; do i=$((i + 1)); echo "line $i of $PADDLE_TRAINER_ID"; done
printf 'last words'
[ "$PADDLE_TRAINER_ID" = 0 ] || exit 3
"""


def test_through_a_writer_logs_are_whole_and_capped(work):
    script = work.script("chatter.sh", CHATTER, 0o755)
    job = work.run("--nproc_per_node=2", "--log_through", "--log_cap=16K", "--log_keep=50", "--show=all",
                   script)
    assert job.status == 3 and "last words" in job.err, job.err
    for rank in (0, 1):
        whole = "".join(f"line {i} of {rank}\n" for i in range(1, 3001)) + "last words"
        (pod,) = (work.directory / "log").glob("*/0")
        parts = sorted(pod.glob(f"workerlog.{rank}.*"),
                       key=lambda p: -int(p.suffix[1:])) + [pod / f"workerlog.{rank}"]
        assert all(p.stat().st_size <= 16 * 1024 for p in parts)
        if rank == 1:
            assert len(parts) >= 3
            assert "".join(p.read_text() for p in parts) == whole
            shown = [line.removeprefix("trainer 1 | ") for line in job.out.splitlines()
                     if line.startswith("trainer 1 | ")]
            assert shown == whole.splitlines()
        assert os.path.samefile(work.directory / "log" / f"workerlog.{rank}", pod / f"workerlog.{rank}")
    assert not job.survivors()


def test_a_restarted_job_has_a_log_for_each_attempt_through_a_writer_too(work):
    script = work.script("flaky.sh",
                         '#!/bin/sh\necho "attempt $FLEETRUN_ATTEMPT"\n[ "$FLEETRUN_ATTEMPT" = 2 ]\n', 0o755)
    for more in ([], ["--log_through"]):
        job = work.run("--max_restart=2", "--restart_backoff=0", *more, script)
        assert job.status == 0, job.err
        assert job.log("workerlog.0") == "attempt 2\n" and job.out == "attempt 0\nattempt 1\nattempt 2\n"
        assert work.run("logs", "--attempt=all").out == job.out
        assert work.run("logs", "--attempt=1").out == "attempt 1\n"


def test_a_full_disk_costs_what_does_not_fit_and_not_the_job(work):
    log = work.directory / "log"
    log.mkdir()
    with small_file_system(log, "size=64k"):
        job = work.run("--log_through", "--show=none", "/bin/sh", "-c", "yes | head -c 1000000; true")
        assert job.status == 0, job.err
        assert job.err.count("is dropped: No space left on device") == 1
        assert "what trainer 0 writes to log/workerlog.0 is dropped" in job.err


def test_a_log_directory_that_is_deleted_costs_the_job_nothing(work):
    script = work.script("long.sh",
                         '#!/bin/sh\necho begun\nuntil [ -e go ]; do sleep 0.01; done\necho more\n', 0o755)
    for more in ([], ["--log_through"]):
        job = work.start(*more, "--show=none", script)
        job.wait_for_log("workerlog.0", "begun")
        shutil.rmtree(work.directory / "log")
        (work.directory / "go").touch()
        job.finish()
        assert job.status == 0, job.err
        (work.directory / "go").unlink()


def test_logs_of_a_running_job_are_followed_to_its_end(work):
    (work.directory / "run").mkdir(mode=0o700)
    (work.directory / "elsewhere").mkdir()
    environment = clean_environment(XDG_RUNTIME_DIR=str(work.directory / "run"))
    script = work.script(
        "steps.sh",
        '#!/bin/sh\necho "step $FLEETRUN_ATTEMPT of $PADDLE_TRAINER_ID"\n'
        'until [ -e "go$FLEETRUN_ATTEMPT" ]; do sleep 0.01; done\n'
        '[ "$FLEETRUN_ATTEMPT" = 1 ] || exit 3\n',
        0o755,
    )
    job = work.start("--nproc_per_node=2", "--job_id=alpha", "--max_restart=1", "--restart_backoff=0",
                     "--show=none", script, environment=environment)
    job.wait_for_log("workerlog.1", "step 0")
    follower = Job(["logs", "-f", "alpha", "--rank=1"], work.directory / "elsewhere", environment)
    work.jobs.append(follower)
    assert follower.process.stdout.readline() == b"step 0 of 1\n"
    (work.directory / "go0").touch()
    assert follower.process.stdout.readline() == b"step 1 of 1\n"
    (work.directory / "go1").touch()
    assert job.finish().status == 0, job.err
    assert follower.finish().status == 0 and follower.out == "", follower.err


def test_the_writer_does_not_outlive_a_fleetrun_that_is_killed(work):
    script = work.script("sleeper.sh", '#!/bin/sh\nprintf "last words"\nexec sleep 100\n', 0o755)
    job = work.start("--nproc_per_node=2", "--log_through", "--show=none", script)
    job.wait_for_log("workerlog.1", "last words")
    job.process.kill()
    job.process.communicate()
    wait_until(lambda: not job.survivors(), "everything of the job ends")
    assert job.log("workerlog.1") == "last words"


def test_a_full_log_device_is_named_and_last_words_are_kept_in_memory(work, python):
    script = work.script("train.py",
                         "import os\n"
                         "for _ in range(200):\n"
                         "    try:\n"
                         "        os.write(1, b'x' * 1023 + b'\\n')\n"
                         "    except OSError:\n"
                         "        break\n"
                         "raise RuntimeError('the model is not there')\n")
    log = work.directory / "log"
    log.mkdir()
    for more, said in (([], "the device of its log is full (log/workerlog.0, 0 B of 64.0 KiB free)"),
                       (["--log_through"], "RuntimeError: the model is not there")):
        with small_file_system(log, "size=64k"):
            job = work.run(*more, f"--python={python}", "--show=none", script)
            assert job.status == 1
            assert said in job.err, job.err


def test_the_first_signal_is_told_at_every_level(work):
    script = work.script("wait.sh", "#!/bin/sh\necho begun\nexec sleep 60\n", 0o755)
    for level, shown in (("info", "INFO"), ("error", "CRITICAL"), ("critical", "CRITICAL")):
        job = work.start(f"--log_level={level}", "--show=none", f"--log_dir=log-{level}", script)
        path = work.directory / f"log-{level}" / "workerlog.0"
        wait_until(lambda path=path: path.exists() and "begun" in path.read_text(), "the job runs")
        job.signal(signal.SIGINT)
        job.finish()
        assert re.search(f"LAUNCH {shown} .* Terminating with signal 2\n", job.err), job.err


def test_output_that_has_no_room_is_told(work):
    with open("/dev/full", "w") as full:
        job = work.run("/bin/echo", "hello", stdout=full)
    assert job.status == 0 and job.log("workerlog.0") == "hello\n"
    assert "WARNING" in job.err and "could be written: No space left on device; their logs have it" in job.err

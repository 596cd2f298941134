"""`fleetrun torchrun`: command line, environment, files and exit statuses of torchrun's."""

import json
import os
import pathlib
import signal
import subprocess

import pytest

from fleetrun_job import clean_environment, find_fleetrun, wait_until

TELL = """
import json, os, sys
own = [{name: value for name, value in os.environ.items() if len(value) < 80}, sys.argv[1:]]
os.write(1, (json.dumps(own) + "\\n").encode())  # whole: the processes share a pipe
os.write(2, f"err of {os.environ['RANK']}\\n".encode())
"""
FAIL = """
import json, os, sys
if os.environ["RANK"] == "1":
    with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
        json.dump({"message": {"message": "ValueError: odd", "extraInfo": {
            "py_callstack": "Traceback:\\n  line 3\\nValueError: odd", "timestamp": "1700000000"}}}, file)
    sys.exit(3)
open("ready", "w").close()
import signal; signal.pause()
"""


@pytest.fixture
def torchrun(work, python):
    def run(*words, **variables):
        variables.setdefault("TMPDIR", str(work.directory))  # of a job that fails the logs stay
        return work.run("torchrun", *words, environment=clean_environment(PYTHON_EXEC=python, **variables))
    return run


@pytest.fixture
def port(ports):
    return ports(1)[0]


def told(text):
    return sorted((json.loads(line) for line in text.splitlines()), key=lambda one: int(one[0]["RANK"]))


def run_directory(work, name="logs"):
    (directory,) = (work.directory / name).iterdir()
    return directory


def test_processes_write_to_the_terminal_and_have_torchruns_variables(work, torchrun, port):
    work.script("tell.py", TELL)
    job = torchrun("--nproc-per-node=2", "--max-restarts=4", "--role=worker", "--rdzv-id=run7",
                   f"--master-port={port}", "tell.py", "--tee", "3")
    assert job.status == 0, job.err
    assert sorted(job.err.splitlines()) == ["err of 0", "err of 1"]
    (_, first), (variables, second) = told(job.out)
    assert first == second == ["--tee", "3"]
    wanted = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0",
              "GROUP_WORLD_SIZE": "1", "ROLE_RANK": "1", "ROLE_WORLD_SIZE": "2", "ROLE_NAME": "worker",
              "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "run7",
              "TORCHELASTIC_MAX_RESTARTS": "4", "TORCHELASTIC_RESTART_COUNT": "0", "OMP_NUM_THREADS": "1"}
    assert wanted.items() <= variables.items()


def test_streams_go_to_files_of_their_own_and_are_shown_after_a_prefix(work, torchrun):
    work.script("say.sh", '#!/bin/sh\necho "out $RANK"\necho "err $RANK" >&2\n', 0o755)
    job = torchrun("--no-python", "--nproc-per-node=2", "--log-dir=logs", "-r", "0:2", "-t", "1:3",
                   "./say.sh", TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE="<${role_name}|${rank}> ")
    assert job.status == 0, job.err
    assert sorted(job.out.splitlines()) == ["<default|1> out 1", "out 0"]
    assert job.err.splitlines() == ["<default|1> err 1"]
    attempt = run_directory(work) / "attempt_0"
    assert (attempt / "0" / "stderr.log").read_text() == "err 0\n"
    assert (attempt / "1" / "stdout.log").read_text() == "out 1\n"
    assert (attempt / "1" / "stderr.log").read_text() == "err 1\n"
    assert not (attempt / "0" / "stdout.log").exists()


def test_only_the_ranks_of_the_filter_are_shown(work, torchrun):
    work.script("say.sh", '#!/bin/sh\necho "out $RANK"\n', 0o755)
    job = torchrun("--no-python", "--nproc-per-node=3", "--log-dir=logs", "--tee=1:1,2:1",
                   "--local-ranks-filter=1", "./say.sh")
    assert job.out == "[default1]:out 1\n"
    assert (run_directory(work) / "attempt_0" / "2" / "stdout.log").read_text() == "out 2\n"


def test_the_table_of_failures_names_the_root_cause_and_the_reply_file_has_it(work, torchrun):
    work.script("fail.py", FAIL)
    reply = work.directory / "reply.json"
    job = torchrun("--nproc-per-node=2", "--log-dir=logs", "--max-restarts=1", "fail.py",
                   TORCHELASTIC_ERROR_FILE=str(reply))
    assert job.status == 1
    error_file = run_directory(work) / "attempt_1" / "1" / "error.json"
    table = job.err[job.err.index("ChildFailedError"):]
    assert "fail.py FAILED" in table and "Root Cause (first observed failure):\n[0]:\n" in table
    assert "  rank      : 1 (local_rank: 1)\n  exitcode  : 3 (pid: " in table
    assert f"  error_file: {error_file}\n  traceback : Traceback:\n    line 3\n  ValueError: odd\n" in table
    assert json.loads(reply.read_text())["message"]["errorCode"] == 3
    assert (run_directory(work) / "attempt_0" / "1" / "error.json").exists()


@pytest.mark.parametrize("words, status, says", [
    (["--start-method=thread", "a.py"], 2, "invalid choice: 'thread'"),
    (["--gpus=0", "a.py"], 2, "unrecognized arguments: --gpus"),
    ([], 2, "arguments are required: training_script"),
    (["--no-python", "--module", "a"], 1, "Don't use both"),
    (["--no-python", "./missing"], 1, "missing"),
    (["missing.py"], 1, "missing.py"),
    (["--no-python", "/bin/sh", "-c", "exit 7"], 1, "exitcode  : 7"),
    (["--no-python", "/bin/sh", "-c", "kill -SEGV $$"], 1, "exitcode  : -11"),
])
def test_exit_statuses_are_torchruns(torchrun, words, status, says):
    job = torchrun(*words)
    assert job.status == status and says in job.err


def test_a_link_named_torchrun_is_torchrun_and_uses_the_python_beside_it(work):
    folder = work.directory / "bin"
    folder.mkdir()
    (folder / "torchrun").symlink_to(find_fleetrun())
    (folder / "python").write_text('#!/bin/sh\necho "beside: $*"\n')
    (folder / "python").chmod(0o755)
    done = subprocess.run([folder / "torchrun", "--nproc_per_node=1", "-m", "pkg.train", "-m"],
                          cwd=work.directory, env=clean_environment(), capture_output=True, text=True,
                          timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "beside: -u -m pkg.train -m\n")


def test_the_signal_that_ends_the_job_reaches_its_processes(work, python):
    work.script("wait.sh", "#!/bin/sh\ntrap 'echo got INT; exit 0' INT\ntouch ready\n"
                           "while :; do read line < fifo; done\n", 0o755)
    os.mkfifo(work.directory / "fifo")
    job = work.start("torchrun", "--no-python", "--log-dir=logs", "-r3", "./wait.sh",
                     environment=clean_environment(PYTHON_EXEC=python))
    wait_until((work.directory / "ready").exists, "the process runs")
    job.process.send_signal(signal.SIGINT)
    assert job.finish().status == 1
    assert (run_directory(work) / "attempt_0" / "0" / "stdout.log").read_text() == "got INT\n"


def test_nothing_is_left_of_logs_that_nobody_asked_for(work, torchrun):
    place = work.directory / "tmp"
    place.mkdir()
    assert torchrun("--no-python", "/bin/true", TMPDIR=str(place)).status == 0
    assert list(place.iterdir()) == []
    job = torchrun("--no-python", "--log-dir=/dev/null", "-r3", "/bin/echo", "a", TMPDIR=str(place))
    assert (job.status, job.out) == (0, "")
    assert list(place.iterdir()) == []


def test_two_launchers_on_one_host_form_one_job(work, python, port):
    work.script("say.sh", '#!/bin/sh\necho "$RANK of $WORLD_SIZE in $GROUP_RANK" >> "said.$RANK"\n', 0o755)
    flags = ["torchrun", "--no-python", "--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d",
             f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=pair", "./say.sh"]
    jobs = [work.start(*flags, environment=clean_environment(PYTHON_EXEC=python)) for _ in range(2)]
    assert [job.finish().status for job in jobs] == [0, 0]
    said = sorted(path.read_text() for path in pathlib.Path(work.directory).glob("said.*"))
    assert said == [f"{rank} of 4 in {rank // 2}\n" for rank in range(4)]

"""The batch script that `fleetrun slurm` prints, run by bash with programs
of the test's own in Slurm's place."""

import os
import signal
import subprocess
import sys

import pytest

from fleetrun_job import DEADLINE, clean_environment, find_fleetrun, wait_until

SHOW = "#!/bin/sh\nfor word; do printf '%s\\0' \"$word\"; done > words\n"
# Python, which starts nothing: a shell whose child is killed beside it ends in other ways. Told once.
WAIT = f"""#!{sys.executable}
import os, signal

def told(number, frame):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])
    with open("told", "a") as file:
        file.write(signal.Signals(number).name[3:] + "\\n")
    os._exit(75)

signal.signal(signal.SIGUSR1, told)
signal.signal(signal.SIGTERM, told)
open("up", "w").close()
while True:
    signal.pause()
"""
SQUEUE = "#!/bin/sh\necho ${JOB_STATE:-RUNNING}\n"
SCONTROL = "#!/bin/sh\necho \"$@\" > requeued\n"


class Script:
    """The script, with `program` in fleetrun's place."""

    def __init__(self, work, arguments, program):
        self.directory = work.directory
        printed = subprocess.run([find_fleetrun(), "slurm", *arguments], capture_output=True,
                                 cwd=work.directory, timeout=DEADLINE,
                                 env=clean_environment())
        assert printed.returncode == 0, printed.stderr.decode()
        path = os.path.realpath(find_fleetrun()).encode()
        assert printed.stdout.count(b"\n  " + path + b"\n") == 1
        work.script("fleetrun", program, 0o755)
        (self.directory /
         "batch").write_bytes(printed.stdout.replace(path, os.fsencode(work.directory / "fleetrun"), 1))
        work.script("squeue", SQUEUE, 0o755)
        work.script("scontrol", SCONTROL, 0o755)
        self.environment = clean_environment(SLURM_JOB_ID="77")
        self.environment["PATH"] = f"{self.directory}:{self.environment['PATH']}"

    def start(self, **more):
        with open(self.directory / "said", "wb") as said:
            return subprocess.Popen(["bash", "batch"], cwd=self.directory, stderr=said,
                                    env={**self.environment, **more}, start_new_session=True)

    def end(self, batch):
        """Its status. bash had nothing to say of the script: every line of it is a command that exists."""
        status = batch.wait(DEADLINE)
        assert [line for line in (self.directory / "said").read_text().splitlines()
                if not line.startswith("fleetrun asks to be started again")] == []
        return status

    def requeued(self):
        path = self.directory / "requeued"
        return path.read_text() if path.exists() else None


def test_every_byte_of_the_arguments_arrives(work):
    hostile = [b"plain", b"a b", b"", b"it's", b'"', b"$HOME", b"`id`", b"$(id)", b"a\nb",
               b"\n#SBATCH --nodes=99\n", b"\\", b"*", b"!x", b"~",
               b"[0]=x", b"-n", b"a\tb", b"\x01\x7f", bytes(range(128, 256)), "ünï".encode(), b"&;|<>(){}",
               b"#", b"%j", b"=", b"\r"]
    script = Script(work, ["--nodes=2", "--nproc_per_node", "3", "train.py", *hostile], SHOW)
    assert script.end(script.start()) == 0
    words = (script.directory / "words").read_bytes().split(b"\0")[:-1]
    assert words == [b"--nproc_per_node", b"3", b"train.py", *hostile]
    text = (script.directory / "batch").read_bytes()
    head = text[: text.index(b"\ncommand=(")]
    assert [line for line in head.split(b"\n") if b"nodes=" in line
            and line.startswith(b"#SBATCH")] == [b"#SBATCH --nodes=2"]


# To the script alone, as Slurm sends both where it has cgroups, or to everybody below it.
@pytest.mark.parametrize("send, number, name",
                         [(os.kill, signal.SIGUSR1, "USR1"), (os.kill, signal.SIGTERM, "TERM"),
                          (os.killpg, signal.SIGTERM, "TERM")])
def test_fleetrun_is_told_and_the_job_goes_back_into_the_queue(work, send, number, name):
    script = Script(work, ["train.py"], WAIT)
    batch = script.start()
    wait_until((script.directory / "up").exists, "fleetrun")
    send(batch.pid, number)
    assert script.end(batch) == 75
    assert (set((script.directory / "told").read_text().split()),
            script.requeued()) == ({name}, "requeue 77\n")


def test_a_cancelled_job_stays_away(work):
    script = Script(work, ["train.py"], WAIT)
    batch = script.start(JOB_STATE="COMPLETING")
    wait_until((script.directory / "up").exists, "fleetrun")
    os.killpg(batch.pid, signal.SIGTERM)
    assert (script.end(batch), script.requeued()) == (75, None)


@pytest.mark.parametrize("flags, status, requeued", [([], 75, True), (["--no_requeue"], 75, False),
                                                     ([], 3, False), ([], 0, False)])
def test_only_75_asks_for_the_queue(work, flags, status, requeued):
    script = Script(work, [*flags, "train.py"], f"#!/bin/sh\nexit {status}\n")
    assert script.end(script.start()) == status
    assert (script.requeued() is not None) == requeued


def test_without_sbatch_submitting_says_what_to_do(work):
    done = subprocess.run([find_fleetrun(), "slurm", "--submit", "train.py"], capture_output=True, text=True,
                          timeout=DEADLINE,
                          env=clean_environment(PATH=str(work.directory)), cwd=work.directory)
    assert done.returncode == 125
    assert "sbatch cannot be started: No such file or directory" in done.stderr
    assert "leave --submit out" in done.stderr


def test_submitting_gives_the_script_to_sbatch(work):
    work.script("sbatch", "#!/bin/sh\n/bin/cat > got\necho Submitted batch job 12\nexit 7\n", 0o755)
    environment = clean_environment(PATH=str(work.directory))
    run = lambda *flags: subprocess.run([find_fleetrun(), "slurm", *flags, "train.py"], capture_output=True,
                                        text=True, timeout=DEADLINE,
                                        env=environment, cwd=work.directory)
    printed, submitted = run(), run("--submit")
    assert (submitted.returncode, submitted.stdout) == (7, "Submitted batch job 12\n")
    got = (work.directory / "got").read_text()
    assert got.splitlines()[2:] == printed.stdout.splitlines()[2:]


def test_several_options_of_sbatch(work):
    words = ["slurm", "--sbatch=--exclusive", "--sbatch=--array=0-3", "t.py"]
    printed = subprocess.run([find_fleetrun(), *words], capture_output=True, text=True, cwd=work.directory,
                             timeout=DEADLINE, env=clean_environment())
    assert printed.returncode == 0, printed.stderr
    assert {"#SBATCH --exclusive", "#SBATCH --array=0-3"} <= set(printed.stdout.splitlines())

"""The secret that the processes of a job prove to each other:
a file of this user's, there for as long as the job runs."""

import json
import os

import pytest

from fleetrun_job import wait_until

# What a process sees, as JSON in a file of its own (its log is shown by fleetrun);
# then it ends as it is told to.
LOOK = """
import json, os, stat, sys
path = os.environ.get("FLEETRUN_SECRET_FILE")
seen = {"path": path}
if path:
    status = os.stat(path)
    seen["mode"] = oct(stat.S_IMODE(status.st_mode))
    seen["mine"] = status.st_uid == os.getuid()
    seen["text"] = open(path).read().strip()
with open(os.environ.get("TRAINING_ROLE", "TRAINER") + os.environ.get("PADDLE_TRAINER_ID", ""), "w") as file:
    json.dump(seen, file)
sys.exit(int(sys.argv[1]))
"""


def seen(work, name="TRAINER0"):
    return json.loads((work.directory / name).read_text())


@pytest.mark.parametrize("flags, names", [(["--nproc_per_node=2"], ["TRAINER0", "TRAINER1"]),
                                          (["--server_num=1", "--trainer_num=1"], ["PSERVER", "TRAINER0"])])
def test_the_processes_of_a_job_get_one_secret_that_is_gone_after_it(work, flags, names):
    work.script("look.py", LOOK)
    job = work.run(*flags, "look.py", 0)
    assert job.status == 0, job.err
    first, second = (seen(work, name) for name in names)
    assert first == second
    path, secret = first["path"], first["text"]
    assert (first["mode"], first["mine"], len(secret)) == ("0o600", True, 64)
    assert secret not in job.out + job.err
    for file in (work.directory / "log").rglob("*"):
        assert not file.is_file() or secret not in file.read_text(errors="replace"), file
    assert not os.path.exists(path)


def test_it_is_gone_after_a_job_that_failed(work):
    work.script("look.py", LOOK)
    assert work.run("--nproc_per_node=1", "look.py", 3).status == 3
    assert not os.path.exists(seen(work)["path"])


def test_every_run_has_a_secret_of_its_own(work):
    work.script("look.py", LOOK)
    secrets = set()
    for _ in range(2):
        assert work.run("--nproc_per_node=2", "look.py", 0).status == 0
        secrets.add(seen(work)["text"])
    assert len(secrets) == 2


def test_insecure_jobs_get_none(work):
    work.script("look.py", LOOK)
    assert work.run("--insecure", "--nproc_per_node=2", "look.py", 0).status == 0
    assert seen(work)["path"] is None


def test_it_is_there_for_as_long_as_a_job_in_the_background_runs(work):
    work.script("look.py", LOOK)
    work.script("late.sh", "#!/bin/sh\nuntil [ -e go ]; do sleep 0.01; done; exec python3 look.py 0\n", 0o755)
    assert work.run("--detach", "./late.sh").status == 0
    (work.directory / "go").touch()
    wait_until((work.directory / "TRAINER0").exists, "the process has its secret")
    wait_until(lambda: not os.path.exists(seen(work)["path"]), "the secret is removed")

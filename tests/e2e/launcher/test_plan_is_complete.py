"""Every variable that fleetrun gives a process stands in the plan of --dry-run, with its value."""

import json
import re

import pytest

from fleetrun_job import clean_environment

UNKNOWN = "(known at start)"
OF_ATTEMPT = ("FLEETRUN_ATTEMPT", "TORCHELASTIC_RESTART_COUNT")
# Writes down the environment of its process; fails in attempts before the one that is its argument.
RECORD = """import json, os, sys
name = os.environ["FLEETRUN_ROLE"] + os.environ["FLEETRUN_LOCAL_RANK"] + "." + os.environ["FLEETRUN_ATTEMPT"]
json.dump(dict(os.environ), open(name + ".json", "w"))
sys.exit(1 if os.environ["FLEETRUN_ATTEMPT"] < sys.argv[1] else 0)
"""
FIRST = {"name": "first", "serves": True, "ready": {"descriptor": True}, "environment": {"GREETING": "hello"},
         "command": ["/bin/sh", "-c", "python3 record.py 0; echo up >&$FLEETRUN_READY_FD; exec sleep 1000"]}
SECOND = {"name": "second", "after": ["first"], "command": ["python3", "record.py", "0"]}


def alike(value, pod):
    """What differs from run to run, name of the pod and leased ports, is replaced by what it is."""
    return re.sub(r"(?<=:)\d{4,5}\b|^\d{4,5}$", "PORT", value.replace(pod, "POD"))


def only_the_secret(_):
    return ["FLEETRUN_SECRET_FILE"]


def check(work, flags, attempt=0, unknown=only_the_secret):
    """Returns the environments of the processes, by the plan. `unknown`: what their plan cannot say."""
    work.script("record.py", RECORD)
    base = clean_environment(GIVEN="by the user", FLEETRUN_SERVER_FIGURES="of an outer job")
    plan = json.loads(work.run("--dry-run=json", *flags, environment=base).out)
    job = work.run(*flags, environment=base)
    assert job.status == 0, job.err
    found = []
    for process in plan["processes"]:
        planned = process["environment"]
        name = planned["FLEETRUN_ROLE"] + planned["FLEETRUN_LOCAL_RANK"]
        got = json.loads((work.directory / f"{name}.{attempt}.json").read_text())
        lacking = [key for key in got if key not in planned and key not in base]
        # Python itself sets LC_CTYPE in a locale without a name, and these tests mark what they started.
        assert set(lacking) <= {"LC_CTYPE", "TEST_MARK"}
        assert got["GIVEN"] == "by the user"
        assert sorted(key for key, value in planned.items() if value == UNKNOWN) == sorted(unknown(process))
        for key, value in planned.items():
            if value != UNKNOWN and not (attempt and key in OF_ATTEMPT):
                assert alike(got[key], got["FLEETRUN_POD"]) == alike(value, plan["pod"]), key
            assert got[key] != UNKNOWN
        found.append(got)
    return found


def unknown_of_ps(process):
    figures = ["FLEETRUN_SERVER_FIGURES"] if process["role"] == "server" else []
    return ["FLEETRUN_SECRET_FILE", "FLEETRUN_PS_RUN", *figures]


def test_of_a_collective_job(work):
    for got in check(work, ["--nproc_per_node=2", "record.py", "0"]):
        assert "FLEETRUN_SERVER_FIGURES" not in got
        assert got["FLEETRUN_SECRET_FILE"].endswith(f"/{got['FLEETRUN_POD']}.secret")


def test_of_a_job_with_servers(work):
    flags = ["--server_num=1", "--trainer_num=1", "record.py", "0"]
    server, trainer = check(work, flags, unknown=unknown_of_ps)
    assert server["FLEETRUN_SERVER_FIGURES"].endswith(f"/{server['FLEETRUN_POD']}.server.0.figures")
    assert "FLEETRUN_SERVER_FIGURES" not in trainer
    assert server["FLEETRUN_PS_RUN"] == trainer["FLEETRUN_PS_RUN"]


def test_of_a_job_that_proves_nothing(work):
    (got,) = check(work, ["--insecure", "--nproc_per_node=1", "record.py", "0"], unknown=lambda _: [])
    assert got["FLEETRUN_INSECURE"] == "1"


@pytest.mark.parametrize("attempt", [0, 1])
def test_of_a_job_that_is_started_again(work, attempt):
    flags = ["--max_restart=1", "--restart_backoff=0", "--nproc_per_node=1", "record.py", str(attempt)]
    (got,) = check(work, flags, attempt=attempt)
    assert got["FLEETRUN_ATTEMPT"] == got["TORCHELASTIC_RESTART_COUNT"] == str(attempt)
    assert got["FLEETRUN_HEARTBEAT_FD"] == "8"


def test_of_a_job_file_whose_role_says_by_a_descriptor_that_it_is_ready(work):
    (work.directory / "job.json").write_text(json.dumps({"roles": [FIRST, SECOND]}))
    first, second = check(work, ["--max_restart=1", "--grace=1", "job.json"], unknown=lambda _: [])
    assert first["GREETING"] == "hello" and "GREETING" not in second
    assert (first["FLEETRUN_READY_FD"], first["FLEETRUN_HEARTBEAT_FD"]) == ("9", "10")
    assert "FLEETRUN_READY_FD" not in second and second["FLEETRUN_HEARTBEAT_FD"] == "8"


def test_a_job_of_several_hosts_says_what_is_known_when_they_have_met(work):
    plan = json.loads(work.run("--dry-run=json", "--nnodes=2", "--nproc_per_node=1", "/bin/true").out)
    (process,) = plan["processes"]
    assert process["environment"]["FLEETRUN_WORLD_FD"] == "9"
    for name in ("FLEETRUN_EPOCH", "FLEETRUN_NODE_RANK", "FLEETRUN_NODES", "FLEETRUN_RUN"):
        assert process["environment"][name] == UNKNOWN


def test_a_shell_script_exports_nothing_that_only_fleetrun_can_give(work):
    script = work.run("--dry-run=sh", "--max_restart=1", "--server_num=1", "--trainer_num=1", "/bin/true").out
    exported = set(re.findall(r"^  export (\w+)=", script, re.MULTILINE))
    comments = set(re.findall(r"^  # fleetrun itself gives: (\w+)=", script, re.MULTILINE))
    assert comments == {"FLEETRUN_HEARTBEAT_FD", "FLEETRUN_PS_RUN", "FLEETRUN_SECRET_FILE",
                        "FLEETRUN_SERVER_FIGURES"}
    assert UNKNOWN not in "".join(re.findall(r"^  export .*", script, re.MULTILINE))
    assert "FLEETRUN_PS_CHECKPOINT" in exported and not exported & comments
    assert all("FLEETRUN_HEARTBEAT_FD" in line for line in re.findall(r"^  unset .*", script, re.MULTILINE))

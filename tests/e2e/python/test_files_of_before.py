"""What fleetrun 0.1.0 has written, and what was written for it, is still read: a job file, the logs and
events.jsonl of a job, saved tables (tests/golden/before)."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

from conftest import environment
from flow import LIMIT
from fleetrun_job import find_fleetrun

BEFORE = pathlib.Path(__file__).resolve().parents[2] / "golden" / "before"
LOGS = """first 0  | ready
first 0  | ready
second 0 | old 0 attempt 0
second 0 | old 0 attempt 1
second 1 | old 1 attempt 0
second 1 | old 1 attempt 1
"""
TABLES = """
import json, sys
from fleetrun import ps

tables = [
    ps.SparseTable("rows", 4, rule=ps.Rule("adagrad", learning_rate=0.5), accessor=ps.Accessor("ctr")),
    ps.DenseTable("weights", 3, rule=ps.Rule("adam", learning_rate=0.1)),
]
keys = [1, -2, 3]

def look(client):
    rows = {name: values.tolist() for name, values in client.get("rows", keys + [7]).items()}
    return {"rows": rows, "weights": client.pull_dense("weights").tolist()}

with ps.Client(tables) as client:
    assert client.load(sys.argv[1]) == ""
    loaded = look(client)
    gradients = [[0, 0.25, 0.5, 0.75], [1, 1.25, 1.5, 1.75], [2, 2.25, 2.5, 2.75]]
    client.push("rows", keys, gradients, shows=[3, 2, 1], clicks=[1, 0, 1])
    client.push_dense("weights", [1, 2, 3])
    print(json.dumps([loaded, look(client)]))
"""


def fleetrun(folder, *arguments):
    variables = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    variables["FLEETRUN_RUN_DIR"] = str(folder / "run")
    done = subprocess.run([find_fleetrun(), *arguments], env=variables, cwd=folder, capture_output=True,
                          text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def keys_of(events):
    """Each type of event, and the names of what it says."""
    found = {}
    for line in events.read_text().splitlines():
        event = json.loads(line)
        found.setdefault(event["type"], set()).update(event)
    return found


def test_a_job_file_of_before_runs_and_tells_the_same_events(tmp_path):
    shutil.copy(BEFORE / "job.json", tmp_path)
    fleetrun(tmp_path, "--show=none", "job.json")
    assert fleetrun(tmp_path, "logs", "--attempt=all") == LOGS
    (events,) = (tmp_path / "log").glob("*/events.jsonl")
    (before,) = (BEFORE / "log").glob("*/events.jsonl")
    now = keys_of(events)
    for kind, names in keys_of(before).items():
        missing = names - now.get(kind, set())
        # Which signal ended a process, or whether its status did, is up to the process.
        assert missing <= {"code", "signal", "core"}, kind


def test_the_logs_of_before_are_shown(tmp_path):
    shutil.copytree(BEFORE / "log", tmp_path / "log")
    assert fleetrun(tmp_path, "logs", "--attempt=all") == LOGS


def test_tables_of_before_are_loaded_with_the_state_of_their_rules(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(TABLES)
    done = subprocess.run([sys.executable, str(script), str(BEFORE / "tables")], capture_output=True,
                          text=True, env=environment(), timeout=LIMIT, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads((BEFORE / "tables.json").read_text())

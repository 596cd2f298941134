#!/usr/bin/env python3
"""usage: tests/campaigns/ps_kills.py [--count N] [--seed N] [--only N] [--fleetrun PATH]

Each run is a job of two parameter servers and two trainers that keeps checkpoints (--ps_checkpoint). Trainers add 1 to
rows that follow from the number of the push, over shared memory, unix sockets or TCP. Each server is killed with SIGKILL
twice, at random times, the second time perhaps before it has come back. Asks that the job ends with 0, that every row is
what the pushes say, exactly, and that nothing of the job is left.

tests/integration/ps/durable/kills.cc does the same within one process, where trainers are killed too and messages lost
and doubled.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import campaign

LIMIT = 120
TRAINER = """
import json, sys
import numpy as np
from fleetrun import ps

KEYS, PUSHES = 97, int(sys.argv[1])


def keys_of(trainer, number):
    return np.unique([(trainer * 31 + number * number) % KEYS, (number * 7 + 3 * trainer) % KEYS]).astype(np.uint64)


tables = [ps.SparseTable("count", 1, rule="sum")]
if ps.is_server():
    ps.Server(tables).wait()
    sys.exit(0)
with ps.Client(tables) as client:
    for number in range(PUSHES):
        keys = keys_of(client.trainer, number)
        client.push("count", keys, np.ones((len(keys), 1), "float32"))
        if number % 50 == 0:
            print(number, flush=True)
        if number % 200 == 0:
            client.barrier()
    client.barrier()
    if client.trainer == 0:
        rows = client.pull("count", np.arange(KEYS, dtype=np.uint64))[:, 0]
        wanted = np.zeros(KEYS, "float32")
        for trainer in range(client.trainers):
            for number in range(PUSHES):
                wanted[keys_of(trainer, number)] += 1
        with open("result", "w") as file:
            json.dump({"wrong": int((rows != wanted).sum()), "rows": float(rows.sum())}, file)
    client.barrier()
"""
state = {"kills": 0, "rows": 0}


def servers_of(turn):
    """The pids of the servers that live, by rank."""
    found = {}
    for pid, line in turn.living().items():
        if "count.py" not in line:
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = dict(part.split(b"=", 1) for part in file.read().split(b"\0") if b"=" in part)
        except OSError:
            continue
        if environment.get(b"TRAINING_ROLE") == b"PSERVER" and b"FLEETRUN_PS_CHECKPOINT" in environment:
            found[int(environment[b"FLEETRUN_RANK"])] = pid
    return found


def run(turn):
    (turn.directory / "count.py").write_text(TRAINER)
    job = turn.start("--server_num=2", "--trainer_num=2", "--ps_checkpoint=kept", "--max_restart=10", "--restart_backoff=0",
                     f"--ps_checkpoint_interval={turn.random.choice([1, 60])}",
                     "count.py", turn.random.randrange(1500, 4000))
    killed = []
    plan = [0, 0, 1, 1]
    turn.random.shuffle(plan)
    deadline = time.monotonic() + LIMIT
    for rank in plan:
        time.sleep(turn.random.uniform(0.0, 0.8))
        while time.monotonic() < deadline and job.poll() is None:
            pid = servers_of(turn).get(rank)
            if pid is not None and pid not in killed:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                break
            time.sleep(0.005)
    try:
        status = job.wait(LIMIT)
    except subprocess.TimeoutExpired:
        job.kill()
        return f"it hangs: {turn.said()[-600:]}"
    if status != 0:
        return f"status {status}: {turn.said()[-900:]}"
    result = json.loads((turn.directory / "result").read_text())
    state["kills"] += len(killed)
    state["rows"] += int(result["rows"])
    if result["wrong"]:
        return f"{result['wrong']} rows wrong"
    return "something is left" if turn.wait_until_gone(10) is None else None


def summary():
    return f"{state['kills']} servers killed, {state['rows']} pushes of rows counted"


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, run, count=125, summary=summary))

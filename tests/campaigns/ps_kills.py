#!/usr/bin/env python3
"""usage: tests/campaigns/ps_kills.py [--count N] [--seed N] [--only N] [--fleetrun PATH]

Each run is a job of two parameter servers and two trainers that keeps checkpoints (--ps_checkpoint). Trainers
add 1 to rows that follow from the number of the push, over shared memory, unix sockets or TCP. Each server
and each trainer is killed with SIGKILL twice, at random times, the second time perhaps before it has come
back; fleetrun starts each again alone.

A trainer notes the number of every push that was answered. In half of the runs trainers have an identity: one
that was started again goes on where the servers are, and every row has to be what the pushes say, exactly. In
the other half the servers take it for another; it notes too what it is about to push, and goes on after that:
every row has to have all pushes that were answered, and those under way at a kill once or not at all. Asks
besides that no push that was answered is unknown to the servers,
that the job ends with 0, and that nothing of it is left.

tests/integration/ps/durable/kills.cc does the same within one process,
where messages are lost and doubled too.
"""

import contextlib
import json
import os
import signal
import sys
import time

import campaign

LIMIT = 120
TRAINER = """
import json, os, sys, time
import numpy as np
from fleetrun import ps

KEYS, PUSHES, HAS_IDENTITY = 97, int(sys.argv[1]), sys.argv[2] == "identity"


def keys_of(trainer, number):
    return np.unique([(trainer * 31 + number * number) % KEYS, (number * 7 + 3 * trainer) % KEYS]).astype(np.uint64)


def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)


class Numbers:
    \"""Numbers of pushes, from 1, kept in a file: what was written to it outlives the process.\"""

    def __init__(self, name):
        self.file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self.known = set(np.frombuffer(os.pread(self.file, os.fstat(self.file).st_size, 0), "<u4").tolist())

    def add(self, number):
        if number not in self.known:
            self.known.add(number)
            os.write(self.file, np.array(number, "<u4").tobytes())


def write(name, value):
    with open(name + ".new", "w") as file:
        json.dump(value, file)
    os.replace(name + ".new", name)


tables = [ps.SparseTable("count", 1, rule="sum")]
if ps.is_server():
    ps.Server(tables).wait()
    sys.exit(0)
rank = int(os.environ["FLEETRUN_RANK"])
begun, answered = Numbers(f"begun-{rank}"), Numbers(f"answered-{rank}")
client = ps.Client(tables, identity=1000 + rank if HAS_IDENTITY else 0)
if HAS_IDENTITY:
    number = client.next_change
    if answered.known and max(answered.known) >= number:
        write("lost", [max(answered.known), number])
else:
    number = max(begun.known, default=0) + 1
while number <= PUSHES:
    begun.add(number)
    keys = keys_of(rank, number)
    client.push("count", keys, np.ones((len(keys), 1), "float32"))
    answered.add(number)
    number += 1
open(f"done-{rank}", "w").close()
if rank == 0:
    wait_for("done-1")
    if not os.path.exists("result"):
        rows = client.pull("count", np.arange(KEYS, dtype=np.uint64))[:, 0]
        least, most = np.zeros(KEYS, "float32"), np.zeros(KEYS, "float32")
        for trainer in range(2):
            sure, perhaps = (Numbers(f"{name}-{trainer}").known for name in ("answered", "begun"))
            for number in range(1, PUSHES + 1):
                # What has a number of its own is repeated until it is there.
                least[keys_of(trainer, number)] += HAS_IDENTITY or number in sure
                most[keys_of(trainer, number)] += HAS_IDENTITY or number in perhaps
        write("result", {"wrong": int(((rows < least) | (rows > most)).sum()), "rows": float(rows.sum()),
                         "unsure": float((most - least).sum()), "twice": int((rows > most).sum())})
wait_for("result")
client.goodbye()
"""
state = {"servers": 0, "trainers": 0, "rows": 0, "unsure": 0}


def processes_of(turn):
    """The pids of the job's servers and trainers that live, by role and rank."""
    found = {}
    for pid, line in turn.living().items():
        if "count.py" not in line:
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = dict(part.split(b"=", 1) for part in file.read().split(b"\0") if b"=" in part)
        except OSError:
            continue
        role = {b"PSERVER": "servers", b"TRAINER": "trainers"}.get(environment.get(b"TRAINING_ROLE"))
        if role and b"FLEETRUN_PS_CHECKPOINT" in environment:
            found[role, int(environment[b"FLEETRUN_RANK"])] = pid
    return found


def kill_some(turn, job, deadline):
    """How many processes of each role were killed."""
    killed = []
    plan = [(role, rank) for role in ("servers", "trainers") for rank in (0, 1)] * 2
    turn.random.shuffle(plan)
    for process in plan:
        time.sleep(turn.random.uniform(0.0, 0.8))
        while time.monotonic() < deadline and job.poll() is None and not (turn.directory / "result").exists():
            pid = processes_of(turn).get(process)
            if pid is not None and pid not in [before for _, before in killed]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                killed.append((process[0], pid))
                break
            time.sleep(0.005)
    return {role: sum(1 for killed_role, _ in killed if killed_role == role)
            for role in ("servers", "trainers")}


def run(turn):
    (turn.directory / "count.py").write_text(TRAINER)
    identity = turn.random.choice(["identity", "none"])
    job = turn.start("--server_num=2", "--trainer_num=2", "--ps_checkpoint=kept", "--max_restart=20",
                     "--restart_backoff=0",
                     "--restart=trainer=process", f"--ps_checkpoint_interval={turn.random.choice([1, 60])}",
                     "count.py", turn.random.randrange(3000, 8000), identity)
    killed = kill_some(turn, job, time.monotonic() + LIMIT)
    if wrong := turn.wait_for_end(job, LIMIT, 900):
        return f"{identity}: {wrong}"
    if (turn.directory / "lost").exists():
        last, found = json.loads((turn.directory / "lost").read_text())
        return f"push {last} was answered, and the servers go on at {found}"
    result = json.loads((turn.directory / "result").read_text())
    for role, count in killed.items():
        state[role] += count
    state["rows"] += int(result["rows"])
    state["unsure"] += int(result["unsure"])
    if result["wrong"]:
        return f"{result['wrong']} rows wrong ({identity}), {result['twice']} of them too large"
    return "something is left" if turn.wait_until_gone(10) is None else None


def summary():
    return (
        f"{state['servers']} servers and {state['trainers']} trainers killed, "
            f"{state['rows']} pushes of rows counted, {state['unsure']} of them under way at a kill without "
            "an identity")


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, run, count=60, summary=summary))

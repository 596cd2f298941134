#!/usr/bin/env python3
"""usage: tests/campaigns/short_lived.py [--count N] [--seed N] [--only N] [--fleetrun PATH]

Runs jobs of four processes that end at once (/bin/true), one after the other, and asks that each job ends
with 0, in time, that none of its processes was lost, and that nothing is left.

A process that ends before anybody knows its pid is the one that launchers lose, and then wait for.
"""

import json
import subprocess
import sys
import time

import campaign

COUNT = 4
LIMIT = 20  # seconds; a job takes some milliseconds
state = {"slowest": 0.0, "events": 0}


def lost_processes(turn):
    """What the event log misses, or None. Each process has to be in it once as started
    and once as ended with 0."""
    logs = list(turn.directory.glob("log/*/events.jsonl"))
    if not logs:
        return None
    state["events"] += 1
    started, ended = set(), set()
    for line in logs[0].read_text().splitlines():
        event = json.loads(line)
        if event["type"] == "process_started":
            started.add(event["rank"])
        if event["type"] == "process_exited" and event["status"] == 0:
            ended.add(event["rank"])
    everybody = set(range(COUNT))
    return None if started == ended == everybody else f"started {sorted(started)}, ended {sorted(ended)}"


def run(turn):
    begin = time.monotonic()
    fleetrun = turn.start(f"--nproc_per_node={COUNT}", "/bin/true")
    try:
        status = fleetrun.wait(LIMIT)
    except subprocess.TimeoutExpired:
        fleetrun.kill()
        fleetrun.wait()
        return f"hung for {LIMIT} s: {turn.said()[-500:]}"
    state["slowest"] = max(state["slowest"], time.monotonic() - begin)
    if status != 0:
        return f"ended with {status}: {turn.said()[-500:]}"
    if f"replicas {COUNT}, status running" not in turn.said():
        return f"not all of them were started: {turn.said()[-500:]}"
    if turn.number % 50 == 0 and turn.living():
        return f"left behind: {turn.living()}"
    return lost_processes(turn)


def summary():
    return f"slowest: {1000 * state['slowest']:.0f} ms; checked against the event log: {state['events']}"


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, run, count=10000, summary=summary))

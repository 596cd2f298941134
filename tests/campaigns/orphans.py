#!/usr/bin/env python3
"""usage: tests/campaigns/orphans.py [--count N] [--seed N] [--only N] [--fleetrun PATH]

Kills fleetrun with SIGKILL at random moments and asks that no process of its job lives one second later.

The processes (clingy.c) ignore every signal that they can, and have descendants that left the session, were
orphaned, or are stopped. Half of the moments lie in the first milliseconds, while fleetrun plans, starts
fleetrun-init and that forks and execs; the others after all processes have come up. Every containment level
that this machine allows takes its turn.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time

import campaign

LIMIT = 1.0  # seconds
START_UP = 0.012  # seconds: longer than a start takes on a fast machine, so that each part of it is hit
state = {"levels": [], "slowest": 0.0, "before_ready": 0, "levels_used": {}}


def prepare(options, folder):
    state["clingy"] = campaign.compile_c("clingy.c", folder)
    for level in ("auto", "pidns", "cgroup2", "subreaper"):
        with tempfile.TemporaryDirectory() as scratch:
            flags = [f"--containment={level}", "--require_containment"] if level != "auto" else []
            done = subprocess.run([options.fleetrun, *flags, "--nproc_per_node=1", "/bin/true"], cwd=scratch,
                                  stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode == 0:
            state["levels"].append(flags)
    print("containment: " + ", ".join(flags[0].partition("=")[2] if flags else "default"
                                      for flags in state["levels"]))


def run(turn):
    count = turn.random.choice((1, 2, 4))
    flags = turn.random.choice(state["levels"])
    ready = turn.directory / "ready"
    fleetrun = turn.start(*flags, f"--nproc_per_node={count}", state["clingy"], ready)
    if turn.random.random() < 0.5:
        time.sleep(turn.random.uniform(0, START_UP))
        state["before_ready"] += not ready.exists() or ready.stat().st_size < count
    else:
        end = time.monotonic() + 30
        while not ready.exists() or ready.stat().st_size < count:
            if fleetrun.poll() is not None or time.monotonic() > end:
                fleetrun.kill()
                fleetrun.wait()
                return f"its {count} processes did not come up: {turn.said()[-500:]}"
            time.sleep(0.001)
        time.sleep(turn.random.uniform(0, 0.02))
    os.kill(fleetrun.pid, signal.SIGKILL)
    begin = time.monotonic()
    fleetrun.wait()
    seconds = turn.wait_until_gone(LIMIT)
    if seconds is None:
        return f"{' '.join(flags)} -n {count}: alive after {LIMIT} s: {turn.living()}"
    state["slowest"] = max(state["slowest"], time.monotonic() - begin)
    level = flags[0].partition("=")[2] if flags else "default"
    state["levels_used"][level] = state["levels_used"].get(level, 0) + 1
    return None


def summary():
    used = ", ".join(f"{level} {count}" for level, count in sorted(state["levels_used"].items()))
    return (f"killed before all had come up: {state['before_ready']}; by containment: {used}; "
            f"slowest to be gone: {1000 * state['slowest']:.0f} ms")


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, run, count=1000, prepare=prepare, summary=summary))

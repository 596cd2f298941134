#!/usr/bin/env python3
"""usage: tests/campaigns/ports.py [--count N] [--seed N] [--only N] [--fleetrun PATH]

Each run starts ten jobs at once, whose processes bind the ports that they were told, without SO_REUSEADDR,
and listen there for a random time: seven trainers and a store, eight ports a job.
Asks that no port was taken by somebody else.

fleetrun holds the ports that it chooses until the process that needs them starts; between that moment and the
process's own bind, another job or an outgoing connection could take them.
"""

import subprocess
import sys

import campaign

JOBS, TRAINERS, LIMIT = 10, 7, 60
state = {"jobs": 0, "program": ""}


def prepare(_, folder):
    state["program"] = campaign.compile_c("endpoint.c", folder)


def run(turn):
    jobs = []
    for number in range(JOBS):
        directory = turn.directory / str(number)
        directory.mkdir()
        with open(directory / "stderr", "wb") as errors:
            jobs.append(subprocess.Popen(
                [turn.options.fleetrun, f"--nproc_per_node={TRAINERS}", state["program"],
                 str(turn.random.randrange(1, 60))],
                cwd=directory, env=turn.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=errors))
    wrong = []
    for number, job in enumerate(jobs):
        try:
            status = job.wait(LIMIT)
        except subprocess.TimeoutExpired:
            job.kill()
            job.wait()
            status = "hung"
        if status != 0:
            said = (turn.directory / str(number) / "stderr").read_text(errors="replace")
            wrong.append(f"job {number}: {status}: {said[-300:]}")
        state["jobs"] += 1
    return "; ".join(wrong) or None


def summary():
    return f"{state['jobs']} jobs, {state['jobs'] * (TRAINERS + 1)} ports"


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, run, count=100, prepare=prepare, summary=summary))

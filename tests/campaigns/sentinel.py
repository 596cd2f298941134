#!/usr/bin/env python3
"""usage: tests/campaigns/sentinel.py [--count N] [--seed N] [--only N] [--fleetrun PATH]

Each run is a training with PyTorch of two to four ranks under --sentinel=every (sentinel_job.py), in which
FAULTS (a variable; 50) faults are made one after the other: a rank that skips an average and steps alone, or
one bit that flips in one value of one parameter. Models, their types, ranks, tensors and bits are drawn.

Every rank has to say in the step after each that the ranks have drifted apart, and in what; with three ranks
or more it names the rank. Steps in between have to go through. Needs a Python with torch: this one, or
Debian's.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys

import campaign

import torch_python

SCRIPT = pathlib.Path(__file__).with_name("sentinel_job.py")
FAULTS, LIMIT = int(os.environ.get("FAULTS", "50")), 240
found = collections.Counter()
python = []


def prepare(options, folder):
    place = pathlib.Path(folder, "packages")
    place.mkdir()
    python.extend(torch_python.find_torch_python(place) or [])
    if not python:
        raise SystemExit("campaign: error: no Python with torch here\n  hint: scripts/setup-debian --tests")


def is_right(ranks, fault, changed, said):
    """Whether every rank said it, of the right tensor and rank; nobody where nothing has changed."""
    if not changed:
        return said == [""] * ranks
    if not all("have drifted apart" in each for each in said):
        return False
    if fault["kind"] == "a flipped bit" and not all(f"'{fault['tensor']}' of rank " in each for each in said):
        return False
    return ranks == 2 or all(f" of rank {fault['rank']} is not that of rank " in each for each in said)


def run(turn):
    ranks = turn.random.choice([2, 3, 4])
    os.environ.update(python[1], OMP_NUM_THREADS="1", SEED=str(turn.random.randrange(1 << 20)),
                      FAULTS=str(FAULTS))
    job = turn.start(f"--nproc_per_node={ranks}", f"--python={python[0]}", "--sentinel=every", SCRIPT)
    try:
        status = job.wait(LIMIT)
    except subprocess.TimeoutExpired:
        job.kill()
        return f"it hangs: {turn.said()[-900:]}"
    log = (turn.directory / "log" / "workerlog.0").read_text()
    made = [json.loads(line) for line in log.splitlines() if line.startswith('{"fault"')]
    if status != 0 or len(made) != FAULTS:
        return f"status {status}, {len(made)} faults: {log[-900:]}"
    missed = [each for each in made if not is_right(ranks, **each)]
    for each in made:
        if each["changed"]:
            found[each["fault"]["kind"], each not in missed] += 1
    return f"{ranks} ranks, not found: {missed[:3]}" if missed else None


def summary():
    kinds = sorted({kind for kind, _ in found})
    made = {kind: found[kind, True] + found[kind, False] for kind in kinds}
    return ", ".join(f"{kind}: {found[kind, True]} of {made[kind]} found in its step" for kind in kinds)


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, run, count=20, prepare=prepare, summary=summary))

#!/usr/bin/env python3
"""usage: tests/campaigns/rank_kills.py [--count N] [--seed N] [--only N] [--fleetrun PATH]

Each run is a training of RANKS ranks (a variable; 4) under --on_failure=replace, with SPARES processes
that stand by (a variable; one or two): WAY (a variable) "fleet" with fleet.distributed_model, "ddp" with
PyTorch's own DistributedDataParallel, "program" a static one (tests/e2e/collective/recovery_*.py). Trainers,
and now and then one that stands by, are killed with SIGKILL, KILLS times in a run (a variable; 10), sometimes
two at once, each time at random within GAP seconds (a variable; 1.5) of the last recovery. Kills that come
faster than processes that stand by can start wait for these starts.

What counted, losses, parameters and the order of examples, has to be to the last bit what it is in a job in
which nobody is killed. Says in the end how long it took from a kill until a step counted on every rank, and
how many steps were taken again. Needs a Python with torch: this one, or Debian's.
"""

import collections
import contextlib
import json
import math
import os
import pathlib
import signal
import statistics
import sys
import tempfile
import time

import campaign

import torch_python

WAY = os.environ.get("WAY", "fleet")
SCRIPT = (campaign.ROOT / "tests" / "e2e" / "collective"
          / ("recovery_program.py" if WAY == "program" else "recovery_job.py"))
RANKS = int(os.environ.get("RANKS", "4"))
KILLS = int(os.environ.get("KILLS", "10"))
GAP = float(os.environ.get("GAP", "1.5"))
SPARES = [int(os.environ["SPARES"])] if "SPARES" in os.environ else [1, 2]
EPOCHS, PACE = 2, 0.15
BATCHES = max(60, math.ceil(KILLS * (2 * PACE + GAP) / PACE / EPOCHS))  # as many as KILLS may take
LIMIT = 240 + BATCHES * EPOCHS * PACE
REPLACE = ("--on_failure=replace",)
state = {"calm": None, "taken": None, "kills": 0, "again": 0, "idle": [], "python": None, "environment": {}}


def notes(folder):
    """{rank: lines}; a line that was written again after the rank's place was taken is there once."""
    found = collections.defaultdict(list)
    for rank in range(RANKS):
        path = folder / f"{rank}.jsonl"
        for line in path.read_text().splitlines() if path.exists() else []:
            note = json.loads(line)
            kept = {key: note[key] for key in note if key not in ("pid", "at")}
            if all(kept != other for other, _ in found[rank][-4:]):
                found[rank].append((kept, note))
    return found


def outcome(folder):
    """What has to be the same in every run."""
    return ([[kept for kept, _ in lines] for _, lines in sorted(notes(folder).items())],
            [(folder / f"{rank}.end").read_text() for rank in range(RANKS)])


def taken(folder):
    """How often each rank has taken a step: those that were cut are in it twice."""
    return [len((folder / f"{rank}.taken").read_text()) for rank in range(RANKS)]


def start(turn, *flags, pace):
    os.environ.update(state["environment"], OUT=str(turn.directory), EPOCHS=str(EPOCHS), BATCHES=str(BATCHES),
                      PACE=str(pace), OMP_NUM_THREADS="1", WRAP=WAY)
    return turn.start(f"--nproc_per_node={RANKS}", f"--python={state['python']}", *flags, SCRIPT)


def newest(turn, count):
    """The last lines of each rank that has so many."""
    found = {}
    for rank in range(RANKS):
        with contextlib.suppress(OSError, ValueError):
            with open(turn.directory / f"{rank}.jsonl", "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
                lines = file.read().splitlines()[-count:]
            if len(lines) == count:
                found[rank] = [json.loads(line) for line in lines]
    return found


def last_notes(turn):
    """The newest line of each rank that has one."""
    return {rank: line for rank, (line,) in newest(turn, 1).items()}


def standing_by(turn):
    """The pids of processes without a rank."""
    own = {note["pid"] for note in last_notes(turn).values()}
    return [pid for pid, line in turn.living().items() if SCRIPT.name in line and "--" not in line
            and pid not in own]


def wait_for_steps(turn, job, after, count):
    """Until each rank has noted so many steps after this time. False: the job has ended."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline and job.poll() is None:
        lines = newest(turn, count)
        if len(lines) == RANKS and all(rank[0]["at"] > after for rank in lines.values()):
            return True
        time.sleep(0.05)
    return False


def kill_some(turn, job):
    """Kills processes; the times at which trainers were."""
    times, after = [], 0.0
    for _ in range(KILLS):
        if not wait_for_steps(turn, job, after, 2):
            break
        time.sleep(turn.random.uniform(0.0, GAP))
        victims = {note["pid"] for note in last_notes(turn).values()}
        count = turn.random.choice([1, 1, 1, 1, 2])
        chosen = turn.random.sample(sorted(victims), min(count, len(victims) - 1))
        if turn.random.random() < 0.1 and standing_by(turn):
            chosen = standing_by(turn)[:1]
        after = time.monotonic()
        for pid in chosen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                state["kills"] += 1
        if victims & set(chosen):
            times.append(after)
    return times


def finish(turn, job):
    """What went wrong, None: nothing."""
    if wrong := turn.wait_for_end(job, LIMIT, 1800):
        return wrong
    return "something is left" if turn.wait_until_gone(10) is None else None


def prepare(options, folder):
    place = pathlib.Path(folder, "packages")
    place.mkdir()
    found = torch_python.find_torch_python(place)
    if found is None:
        raise SystemExit("campaign: error: no Python with torch here\n  hint: scripts/setup-debian --tests")
    state["python"], state["environment"] = found


def run(turn):
    if state["calm"] is None:
        with tempfile.TemporaryDirectory(prefix="calm-") as folder:
            calm = campaign.Turn("calm", turn.options, folder)
            # Ranks of PyTorch's own DistributedDataParallel have the same buffers at the end of a step only
            # where a rank may be lost.
            wrong = finish(calm, start(calm, *(REPLACE if WAY == "ddp" else ()), pace=0))
            if wrong:
                return f"nobody killed: {wrong}"
            state["calm"], state["taken"] = outcome(calm.directory), taken(calm.directory)
    job = start(turn, *REPLACE, f"--spares={turn.random.choice(SPARES)}", pace=PACE)
    times = kill_some(turn, job)
    wrong = finish(turn, job)
    if wrong:
        return wrong
    lines = [[note["at"] for _, note in rank] for rank in notes(turn.directory).values()]
    # Until a step counted on every rank, that which took the place too.
    state["idle"] += [max(min(at for at in rank if at > killed) for rank in lines) - killed
                      for killed in times if all(rank[-1] > killed for rank in lines)]
    state["again"] += max(mine - calm for mine, calm in zip(taken(turn.directory), state["taken"]))
    return None if outcome(turn.directory) == state["calm"] else "not what it is when nobody is killed"


def summary():
    idle = sorted(state["idle"])
    if not idle:
        return "nobody was killed"
    return (f"{state['kills']} kills of {RANKS} ranks, at {len(idle)} times; {state['again']} steps taken "
            f"again; until a step counted on all ranks: median {statistics.median(idle):.2f} s, nine of ten "
            f"within {idle[int(0.9 * (len(idle) - 1))]:.2f} s, at most {idle[-1]:.2f} s")


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, run, count=20, prepare=prepare, summary=summary))

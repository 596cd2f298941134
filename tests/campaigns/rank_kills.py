#!/usr/bin/env python3
"""usage: tests/campaigns/rank_kills.py [--count N] [--seed N] [--only N] [--fleetrun PATH]

Each run is a training with PyTorch of RANKS ranks (a variable; 4) under --on_failure=replace, with one or two
processes that stand by (tests/e2e/collective/recovery_job.py). Trainers, and now and then one that stands by,
are killed with SIGKILL at random times, ten times in a run, sometimes two at once.

What counted, losses, parameters and the order of examples, has to be to the last bit what it is in a job in
which nobody is killed. Says in the end how long it took from a kill until the next step counted. Needs a
Python with torch: this one, or Debian's.
"""

import collections
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import campaign

sys.path.insert(0, str(campaign.ROOT / "tests" / "support"))
import torch_python  # noqa: E402

SCRIPT = campaign.ROOT / "tests" / "e2e" / "collective" / "recovery_job.py"
RANKS = int(os.environ.get("RANKS", "4"))
KILLS, EPOCHS, BATCHES, PACE, LIMIT = 10, 2, 60, 0.15, 240
state = {"calm": None, "kills": 0, "idle": [], "python": None, "environment": {}}


def notes(folder):
    """{rank: lines}; a line that was written again after the rank's place was taken is there once."""
    found = collections.defaultdict(list)
    for rank in range(RANKS):
        path = folder / f"{rank}.jsonl"
        for line in path.read_text().splitlines() if path.exists() else []:
            note = json.loads(line)
            kept = {key: note[key] for key in note if key not in ("pid", "at")}
            if not found[rank] or found[rank][-1][0] != kept:
                found[rank].append((kept, note))
    return found


def outcome(folder):
    """What has to be the same in every run."""
    return ([[kept for kept, _ in lines] for _, lines in sorted(notes(folder).items())],
            [(folder / f"{rank}.end").read_text() for rank in range(RANKS)])


def is_right(found, calm, kills):
    """Whether it is what it is when nobody is killed. A rank that is killed after a step has counted, and
    before it notes that, leaves the line out: once for each kill at most."""
    missing = 0
    for mine, right in zip(found[0], calm[0]):
        rest = iter(right)
        if not all(any(note == other for other in rest) for note in mine):
            return False
        missing += len(right) - len(mine)
    return len(found[0]) == len(calm[0]) and found[1] == calm[1] and missing <= kills


def start(turn, *flags, pace):
    os.environ.update(state["environment"], OUT=str(turn.directory), EPOCHS=str(EPOCHS), BATCHES=str(BATCHES),
                      PACE=str(pace), OMP_NUM_THREADS="1")
    return turn.start(f"--nproc_per_node={RANKS}", f"--python={state['python']}", *flags, SCRIPT)


def last_notes(turn):
    """The newest line of each rank that has one."""
    found = {}
    for rank in range(RANKS):
        with contextlib.suppress(OSError, ValueError, IndexError):
            found[rank] = json.loads((turn.directory / f"{rank}.jsonl").read_text().splitlines()[-1])
    return found


def standing_by(turn):
    """The pids of processes without a rank."""
    own = {note["pid"] for note in last_notes(turn).values()}
    return [pid for pid, line in turn.living().items() if "recovery_job.py" in line and "--" not in line
            and pid not in own]


def wait_for_steps(turn, job, after, count):
    """Until each rank has noted so many steps after this time. False: the job has ended."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline and job.poll() is None:
        lines = notes(turn.directory)
        if all(sum(note["at"] > after for _, note in lines[rank]) >= count for rank in range(RANKS)):
            return True
        time.sleep(0.05)
    return False


def kill_some(turn, job):
    """Kills processes; the times at which trainers were."""
    times, after = [], 0.0
    for _ in range(KILLS):
        if not wait_for_steps(turn, job, after, 2):
            break
        time.sleep(turn.random.uniform(0.0, 1.5))
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
    try:
        status = job.wait(LIMIT)
    except subprocess.TimeoutExpired:
        job.kill()
        return f"it hangs: {turn.said()[-900:]}"
    if status != 0:
        return f"status {status}: {turn.said()[-1800:]}"
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
            wrong = finish(calm, start(calm, pace=0))
            if wrong:
                return f"nobody killed: {wrong}"
            state["calm"] = outcome(calm.directory)
    before = state["kills"]
    job = start(turn, "--on_failure=replace", f"--spares={turn.random.choice([1, 2])}", pace=PACE)
    times = kill_some(turn, job)
    wrong = finish(turn, job)
    if wrong:
        return wrong
    lines = [note["at"] for rank in notes(turn.directory).values() for _, note in rank]
    state["idle"] += [min(at for at in lines if at > killed) - killed for killed in times
                      if any(at > killed for at in lines)]
    is_same = is_right(outcome(turn.directory), state["calm"], state["kills"] - before)
    return None if is_same else "not what it is when nobody is killed"


def summary():
    idle = sorted(state["idle"])
    if not idle:
        return "nobody was killed"
    return (f"{state['kills']} kills of {RANKS} ranks; until the next step counted: median "
            f"{statistics.median(idle):.2f} s, nine of ten within {idle[int(0.9 * (len(idle) - 1))]:.2f} s, "
            f"at most {idle[-1]:.2f} s")


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, run, count=20, prepare=prepare, summary=summary))

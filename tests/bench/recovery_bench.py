#!/usr/bin/env python3
"""What the loss of a rank costs: fleetrun --on_failure=replace, a restart of all (--max_restart) and torchrun
(--max-restarts), the same script, the same kill.

usage: scripts/bench recovery --python PYTHON [--torchrun COMMAND] [--ranks N] [--rounds N] [--fleetrun PATH]

Trains examples/recovery/train.py, which keeps a checkpoint after each epoch, and kills a trainer with
SIGKILL in the middle of one. Says for each, as medians over the rounds: the seconds from the kill until the
rank makes a step again, and how many steps were taken again. PYTHON has torch and the package.
"""

import argparse
import json
import os
import pathlib
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "recovery" / "train.py"
EPOCHS, LIMIT = 4, 240
# In the example's step: who made it, when.
NOTE = """        with open(f"steps.{rank}", "a") as notes:
            notes.write(json.dumps([os.getpid(), time.monotonic(), epoch, inputs[0].item()]) + "\\n")
        return loss.item()
"""


def prepare(folder):
    """The example, with a line for each step that was made."""
    script = EXAMPLE.read_text()
    script = script.replace("        return loss.item()\n", NOTE)
    script = script.replace("import os\n", "import json\nimport os\n")
    (folder / "train.py").write_text(script)


def steps(folder, rank):
    """[pid, time, epoch, first example] of each step that the rank made."""
    path = folder / f"steps.{rank}"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def measure(command, ranks, environment):
    """(seconds without a step, steps that were taken again) of one loss."""
    with tempfile.TemporaryDirectory(prefix="recovery-") as place:
        folder = pathlib.Path(place)
        prepare(folder)
        job = subprocess.Popen([*command, "train.py", f"--epochs={EPOCHS}", "--pace=0.1"], cwd=folder,
                               env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
        victim, in_epoch = ranks - 1, 1024 // ranks // 32
        enough = in_epoch + in_epoch // 2 + 1
        deadline = time.monotonic() + LIMIT
        while len(steps(folder, victim)) < enough and job.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        before = steps(folder, victim)
        if len(before) < enough:
            job.kill()
            said = job.communicate()[1]
            raise SystemExit(f"recovery_bench: error: {command} made no steps\n{said[-2000:]}")
        killed = time.monotonic()
        os.kill(before[-1][0], signal.SIGKILL)
        _, said = job.communicate(timeout=LIMIT)
        if job.returncode != 0:
            raise SystemExit(f"recovery_bench: error: {command} ended with {job.returncode}\n{said[-2000:]}")
        after = [note for note in steps(folder, victim) if note[1] > killed]
        made = [tuple(note[2:]) for note in steps(folder, victim)]
        return after[0][1] - killed, len(made) - len(set(made))


def main():
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--torchrun")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fleetrun", default=shutil.which("fleetrun"))
    options = parser.parse_args()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    common = [options.fleetrun, f"--python={options.python}", f"--nproc_per_node={options.ranks}"]
    sides = {"--on_failure=replace": [*common, "--on_failure=replace"],
             "--max_restart=3": [*common, "--max_restart=3"]}
    if options.torchrun:
        sides["torchrun --max-restarts=3"] = [*shlex.split(options.torchrun),
                                              f"--nproc_per_node={options.ranks}", "--max_restarts=3"]
    found = {name: [] for name in sides}
    for _ in range(options.rounds):
        for name, command in sides.items():
            found[name].append(measure(command, options.ranks, environment))
    print(f"{options.ranks} ranks, {options.rounds} rounds")
    for name, results in found.items():
        seconds, again = (statistics.median(column) for column in zip(*results))
        print(f"{name:26} {seconds:6.2f} s without a step, {again:.0f} steps taken again")


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What the loss of a rank costs: fleetrun --on_failure=replace, a restart of all (--max_restart) and torchrun
(--max-restarts), the same script, the same kill.

usage: scripts/bench recovery --python PYTHON [--torchrun COMMAND] [--ranks N] [--rounds N] [--fleetrun PATH]
       scripts/bench recovery --cost --python PYTHON [--ranks N] [--rounds N] [--fleetrun PATH]

Trains examples/recovery/train.py, which keeps a checkpoint after each epoch, and kills a trainer with
SIGKILL in the middle of one. Says for each, as medians over the rounds: the seconds from the kill until the
rank makes a step again, and how many steps were taken again. PYTHON has torch and the package.

--cost: what --on_failure=replace costs each step where nothing fails: models of several sizes, trained with
Adam, with and without it. A copy of the state is made at each step's start, and a vote at its end.
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


# Prints the processor's seconds of a step (of all threads of the process) and the clock's, as medians.
COST = """
import statistics, sys, time
import torch
import fleetrun.distributed.fleet as fleet
from fleetrun.torch import recoverable

torch.set_num_threads(1)
fleet.init(is_collective=True)
width, rows = int(sys.argv[1]), int(sys.argv[2])
layers = [layer for _ in range(4) for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())]
model = fleet.distributed_model(torch.nn.Sequential(*layers))
optimizer = torch.optim.Adam(model.parameters())
run = recoverable(model, optimizer)
inputs = torch.randn(rows, width)

def step():
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()

spent = []
for _ in range(25):
    used, begun = time.process_time(), time.monotonic()
    run.step(step)
    spent.append((time.process_time() - used, time.monotonic() - begun))
if fleet.worker_index() == 0:
    print(*(statistics.median(column) for column in zip(*spent[5:])))
"""
# Width of the four layers, examples of a batch.
SIZES = ((128, 256), (512, 256), (1024, 64), (1024, 256), (2048, 256))


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


def measure_cost(options, environment, flags, width, rows):
    """(processor's seconds, seconds) of a step."""
    with tempfile.TemporaryDirectory(prefix="recovery-") as place:
        folder = pathlib.Path(place)
        (folder / "train.py").write_text(COST)
        subprocess.run([options.fleetrun, f"--python={options.python}", f"--nproc_per_node={options.ranks}",
                        *flags, "train.py", str(width), str(rows)], cwd=folder, env=environment, check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=LIMIT)
        return [float(word) for word in (folder / "log" / "workerlog.0").read_text().split()[-2:]]


def show_costs(options, environment):
    print(f"{options.ranks} ranks, {options.rounds} rounds; ms of a step, of the processor and of the clock")
    for width, rows in SIZES:
        plain, replaced = [], []
        for _ in range(options.rounds):
            plain.append(measure_cost(options, environment, [], width, rows))
            replaced.append(measure_cost(options, environment, ["--on_failure=replace", "--spares=0"],
                                         width, rows))
        (cpu, clock), (cpu_more, clock_more) = (
            [1000 * statistics.median(column) for column in zip(*side)] for side in (plain, replaced))
        megabytes = 4 * (4 * (width + 1) * width) * 4 / 1e6  # parameters, gradients, two of Adam's
        print(f"{megabytes:7.1f} MB of state, {rows:3} examples: {cpu:7.1f} {clock:7.1f} without, "
              f"{cpu_more:7.1f} {clock_more:7.1f} with: {cpu_more / cpu - 1:+.0%} of the processor's time",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--torchrun")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fleetrun", default=shutil.which("fleetrun"))
    parser.add_argument("--cost", action="store_true")
    options = parser.parse_args()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if options.cost:
        return show_costs(options, environment)
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

#!/usr/bin/env python3
"""A step of data parallel training, 2 processes with one thread each:
fleetrun's DataParallel beside PyTorch's own on Gloo.

usage: scripts/bench data_parallel [--rounds N] [--steps N] [--ranks N] [--python PATH]

Both sides are started by fleetrun in the same interpreter with the same network, in turn, --rounds times.
Milliseconds of a step (forward, backward, averaged gradients, SGD with momentum) are the median of a run's
steps; without others: one process alone. --python: an interpreter with torch and the package; not given: the
one that runs this, or Debian's (python3-torch).
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
from torch_python import clean_environment, find_torch_python  # noqa: E402

STEP = ROOT / "tests" / "bench" / "data_parallel_step.py"
FLEETRUN = pathlib.Path(sys.executable).parent / "fleetrun"
# Layers, width, batch: parameters of 0.07, 1.1 and 17 MB.
NETWORKS = [(4, 64, 32), (4, 256, 64), (4, 1024, 64)]


def run(side, network, options, folder, interpreter):
    """Milliseconds of a step."""
    python, environment = interpreter
    ranks = 1 if side == "alone" else options.ranks
    command = [FLEETRUN, f"--nproc_per_node={ranks}", f"--python={python}", STEP, side, *map(str, network),
               str(options.steps)]
    done = subprocess.run(command, cwd=folder, env=clean_environment(**environment), text=True,
                          capture_output=True, timeout=300)
    found = re.search(r"step (\d+\.\d+)", (folder / "log" / "workerlog.0").read_text())
    if done.returncode != 0 or not found:
        raise SystemExit(f"bench: error: {side} of {network} failed\n"
                         f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return float(found[1])


def spread(values, digits=2):
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--python", help="an interpreter with torch and the package")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        links, folder = pathlib.Path(place, "links"), pathlib.Path(place, "run")
        links.mkdir()
        folder.mkdir()
        interpreter = ((options.python, {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}) if options.python
                       else find_torch_python(links))
        if interpreter is None:
            raise SystemExit("bench: error: no interpreter with torch\n"
                             "  hint: scripts/setup-debian --tests, or --python=PATH")
        print(f"{options.ranks} processes, milliseconds of a step, median of {options.rounds} rounds "
              "(smallest to largest)")
        print("layers x width, batch   fleetrun                PyTorch DDP, "
              "Gloo       PyTorch / fleetrun      one process alone")
        for network in NETWORKS:
            times = {side: [] for side in ("fleetrun", "torch", "alone")}
            for _ in range(options.rounds):
                for side, values in times.items():
                    values.append(run(side, network, options, folder, interpreter))
            ratios = [other / own for own, other in zip(times["fleetrun"], times["torch"])]
            layers, width, batch = network
            columns = [f"{layers} x {width}, {batch}", spread(times["fleetrun"]), spread(times["torch"]),
                       spread(ratios),
                       spread(times["alone"])]
            print("".join(f"{column:24}" for column in columns).rstrip(), flush=True)


if __name__ == "__main__":
    main()

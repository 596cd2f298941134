#!/usr/bin/env python3
"""The flights of examples/wide_and_deep in every mode and in one process: do they learn the same?

usage: tests/oracles/mode_parity.py [--data DIR] [--seeds 1,2,3] [--epochs 3] [--trainers 2] [--servers 1]
                                      [--threads 1] [--geo-steps 100] [--within 0.005] [--no-repeat]

Trains the example with each seed: in one process, and with servers in sync, half_async, async and geo mode.
Prints the test AUC of each and the figures of its last pass. Ends with 1 when the modes' medians over the
seeds are further apart than --within, or when two synchronous runs of one seed printed different losses. DIR
is what the example's prepare_data.py wrote (default: the example's data/); fleetrun is $FLEETRUN_BIN or the
one in PATH, and the package that of the interpreter that runs this.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "wide_and_deep"
MODES = ("one process", "sync", "half_async", "async", "geo")
LIMIT = 1200  # seconds that one run may take


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, default=EXAMPLE / "data")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")],
                        default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=500)
    parser.add_argument("--trainers", type=int, default=2)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--geo-steps", type=int, default=100)
    parser.add_argument("--within", type=float, default=0.005)
    parser.add_argument("--no-repeat", action="store_true", help="no second synchronous run")
    parser.add_argument("--modes", type=lambda text: text.split(","), default=list(MODES))
    return parser.parse_args(words)


def command(mode, options):
    """How a mode is started."""
    if mode == "one process":
        return [sys.executable, "train.py"]
    fleetrun = os.environ.get("FLEETRUN_BIN") or shutil.which("fleetrun")
    if not fleetrun:
        raise SystemExit("mode_parity: error: there is no fleetrun\n  hint: set FLEETRUN_BIN")
    return [fleetrun, f"--server_num={options.servers}", f"--trainer_num={options.trainers}", "--python",
            sys.executable,
            "train.py", "--mode", mode, "--geo-steps", str(options.geo_steps)]


def train(mode, seed, options, folder):
    """(test AUC, the losses that the first trainer printed, seconds)"""
    argv = command(mode, options) + ["--data", str(options.data.resolve()), "--seed", str(seed),
                                     "--print-period", "50",
                                     "--epochs", str(options.epochs), "--batch-size", str(options.batch_size),
                                     "--threads", str(options.threads)]
    started = time.monotonic()
    run = subprocess.run(argv, cwd=folder, text=True, capture_output=True, timeout=LIMIT,
                         stdin=subprocess.DEVNULL,
                         env={**os.environ, "OMP_NUM_THREADS": "1"})
    found = re.search(r"^test AUC: (0\.\d+) on (\d+) flights", run.stdout, re.MULTILINE)
    if run.returncode != 0 or not found:
        raise SystemExit(f"mode_parity: error: {mode}, seed {seed}, ended with {run.returncode}\n"
                         f"{run.stdout}{run.stderr}")
    losses = re.findall(r"batch: \[\d+\], loss\[1\]:\[([^\]]*)\]", run.stdout)
    return float(found[1]), losses, time.monotonic() - started


def main(words):
    options = parse(words)
    problems, medians = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for file in EXAMPLE.glob("*.py"):
            shutil.copy(file, folder)
        for mode in options.modes:
            areas = []
            for seed in options.seeds:
                area, losses, seconds = train(mode, seed, options, folder)
                areas.append(area)
                print(f"{mode}, seed {seed}: AUC {area:.4f}, {seconds:.0f} s", flush=True)
                if mode == "sync" and seed == options.seeds[0] and not options.no_repeat:
                    again, repeated, _ = train(mode, seed, options, folder)
                    same = losses == repeated and area == again and losses
                    print(f"sync again: {'identical' if same else 'different'}, {len(losses)} losses",
                          flush=True)
                    if not same:
                        problems.append("two synchronous runs differ")
            medians[mode] = statistics.median(areas)
            print(f"{mode}: {medians[mode]:.4f} ({min(areas):.4f} to {max(areas):.4f})", flush=True)
    spread = max(medians.values()) - min(medians.values())
    print(f"the medians are within {spread:.4f}")
    if spread > options.within:
        problems.append(f"the medians are {spread:.4f} apart, more than {options.within}")
    for problem in problems:
        print(f"mode_parity: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

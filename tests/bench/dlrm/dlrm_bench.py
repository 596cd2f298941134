#!/usr/bin/env python3
"""usage: scripts/bench dlrm --python=PYTHON [--rows=N] [--batch=N] [--steps=N] [--rounds=N]
                           [--mode=MODE]

DLRM on fleetrun.torch.EmbeddingBag, without and with prefetch(), beside nn.EmbeddingBag(sparse=True): one
trainer and one server, one thread each, on made-up rows of the shape of Criteo's week
(tests/bench/dlrm/criteo_rows.py). Both begin with the same values and see the same batches, so in mode sync
the losses are to be equal within rounding: the largest difference is said. With --steps=0, the default, a
side trains on the first six days, and its AUC is that of the seventh. PYTHON has torch and the package.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FLEETRUN = pathlib.Path(sys.executable).parent / "fleetrun"
SIDES = ("torch", "servers", "prefetch")
LIMIT = 3600


def run(side, options, data, folder):
    """What one side prints, from JSON."""
    words = [HERE / "dlrm_side.py", side, data, options.batch, options.steps, options.mode]
    job = [options.python] if side == "torch" else [
        options.fleetrun, "--server_num=1", "--trainer_num=1", f"--python={options.python}"]
    done = subprocess.run([*map(str, job), *map(str, words)], cwd=folder, capture_output=True, text=True,
                          timeout=LIMIT, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
    said = done.stdout if side == "torch" else (folder / "log" / "workerlog.0").read_text()
    if done.returncode != 0:
        raise SystemExit(f"bench: error: {side} failed\n{said[-2000:]}{done.stderr[-2000:]}")
    return json.loads(said.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--fleetrun", default=FLEETRUN)
    for name, value in (("rows", 1_200_000), ("batch", 128), ("steps", 0), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--mode", default="sync")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder, data = pathlib.Path(place), pathlib.Path(place, "data")
        subprocess.run([options.python, HERE / "criteo_rows.py", data, f"--rows={options.rows}"], check=True)
        results = {side: [] for side in SIDES}
        for _ in range(options.rounds):
            for side in SIDES:
                results[side].append(run(side, options, data, folder))
    print(f"{'':10}{'examples/s':>12}{'ratio':>8}{'AUC':>10}{'MiB':>8}  largest difference of a loss")
    for side in SIDES:
        found, peer = results[side], results["torch"]
        ratio = statistics.median(a["examples"] / b["examples"] for a, b in zip(found, peer))
        apart = max(abs(a - b) for one, other in zip(found, peer)
                    for a, b in zip(one["losses"], other["losses"]))
        print(f"{side:10}{statistics.median(one['examples'] for one in found):12,.0f}{ratio:8.2f}"
              f"{found[0]['auc']:10.6f}{max(one['memory'] for one in found):8.0f}  {apart:.1e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

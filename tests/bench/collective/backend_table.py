"""What scripts/bench collective says of torch.distributed: backend "fleetrun" beside gloo, in one
interpreter, both started by fleetrun, taking turns (tests/bench/collective/backend_peer.py)."""

import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

import peers  # noqa: E402
from torch_python import clean_environment, package_links  # noqa: E402

FLEETRUN = pathlib.Path(sys.executable).parent / "fleetrun"
SIZES = [4096, 65536, 1 << 20, 16 << 20]
SIDES = ("fleetrun", "gloo")
STEPS = 7
LIMIT = 600  # seconds for one program


def figures_of(side, ranks, folder, environment):
    """({(what, bytes): (microseconds, wrong)}, {model: milliseconds in collectives and of a step})"""
    python = os.path.join(peers.folder_of("torch"), "bin", "python")
    command = [FLEETRUN, f"--nproc_per_node={ranks}", f"--python={python}", f"--log_dir={folder}/log",
               HERE / "backend_peer.py", side, str(STEPS), *map(str, SIZES)]
    done = subprocess.run(command, cwd=folder, env=clean_environment(**environment), text=True,
                          capture_output=True, timeout=LIMIT, check=False)
    if done.returncode:
        sys.exit(f"bench: error: backend {side} failed\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    lines = [line.split() for line in pathlib.Path(folder, "log", "workerlog.0").read_text().splitlines()]
    rows = {(line[1], int(line[2])): (float(line[3]), int(line[4])) for line in lines if line[:1] == ["row"]}
    models = {line[1]: [float(word) for word in line[2:]] for line in lines if line[:1] == ["model"]}
    return rows, models


def compared(figures):
    """Text: the medians of both sides, and the ratio of their rounds with its spread."""
    ours, theirs = (figures[side] for side in SIDES)
    ratios = [other / own for own, other in zip(ours, theirs)]
    return (f"{statistics.median(ours):11.1f} {statistics.median(theirs):11.1f} "
            f"{statistics.median(ratios):8.2f}x ({min(ratios):.2f} to {max(ratios):.2f})")


def print_table(ranks, rounds, folder):
    links = pathlib.Path(folder, "links")
    links.mkdir(exist_ok=True)
    environment = {"PYTHONPATH": str(links)} if any(links.iterdir()) else package_links(links)
    results = {side: [] for side in SIDES}
    for _ in range(rounds):
        for side in SIDES:
            results[side].append(figures_of(side, ranks, folder, environment))
    print(f"\n# torch.distributed, {ranks} ranks, {rounds} rounds: fleetrun, gloo, gloo / fleetrun")
    print(f"#{'call, size (B)':>24} {'time (us)':>11} {'time (us)':>11}")
    for key in results[SIDES[0]][0][0]:
        wrong = max(rows[key][1] for each in results.values() for rows, _ in each)
        times = {side: [rows[key][0] for rows, _ in results[side]] for side in SIDES}
        print(f"{key[0]:>14} {key[1]:10} {compared(times)}  #wrong {wrong}")
    print(f"#{'DDP, a step of':>24} {'time (ms)':>11} {'time (ms)':>11}")
    for model in results[SIDES[0]][0][1]:
        for column, what in enumerate(("in collectives", "whole")):
            times = {side: [models[model][column] for _, models in results[side]] for side in SIDES}
            print(f"{model + ', ' + what:>25} {compared(times)}")
    sys.stdout.flush()

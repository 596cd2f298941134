#!/usr/bin/env python3
"""usage: scripts/bench engine [--batch=1000] [--threads=1] [--rounds=5] [--without=torch,paddle]

Examples/s of training the CTR network (26 slots x 10, 13 floats, layers 400 x 400 x 400, SGD) on data in
memory, without a server, in turn with:

  products   the same matrix products alone, in oneDNN, on as many threads
  torch      PyTorch, one lookup for all slots
  paddle     Paddle 2.6.2's train_from_dataset over an InMemoryDataset, the same script as ours

With --threads=2 or more also `replicas`, as many replicas that share out a batch of --batch examples for each
(what CompiledProgram.with_data_parallel does), beside `one_replica` with a batch alone (replicas_bench).

`engine` is the executor with batches from memory (engine_bench, of a build with -Dbench=enabled in `build`),
`train_from_dataset` the whole call of the Python package that .venv has (scripts/build). Each side starts a
process in each round; the first pass is left out, and the median of the others is its figure. A ratio is that
of one round: median, and the smallest and largest in brackets.
Peers are where `scripts/bench setup-peers` puts them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))

import peers  # noqa: E402, it lies beside this folder

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(FOLDER)))
WORK = os.path.join(ROOT, ".cache", "bench", "engine")
BUILD = os.path.join(ROOT, "build")
BENCH = os.path.join(BUILD, "tests", "bench", "engine_bench")
REPLICAS_BENCH = os.path.join(BUILD, "tests", "bench", "replicas_bench")
OURS = os.path.join(ROOT, ".venv", "bin", "python")
LIMIT = 120  # seconds for one run


def fail(text, hint):
    sys.exit(f"bench: error: {text}\n  hint: {hint}")


def environment(**more):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("PADDLE_", "FLEETRUN_"))}
    return {**clean, "OMP_NUM_THREADS": "1", "GLOG_minloglevel": "2", **more}


def rate(argv, rows, arguments, **more):
    """Examples/s of one process that writes a report of its passes."""
    report = os.path.join(WORK, "report.json")
    if os.path.exists(report):
        os.remove(report)
    argv = [*argv, "--report", report, "--batch-size", str(arguments.batch), "--threads",
            str(arguments.threads)]
    with open(os.path.join(WORK, "output.txt"), "w") as output:
        ended = subprocess.run(argv, cwd=WORK, env=environment(**more), stdout=output,
                               stderr=subprocess.STDOUT,
                               timeout=LIMIT, check=False)
    if not os.path.exists(report):
        fail(f"{' '.join(argv)} wrote no report (status {ended.returncode})", f"read {WORK}/output.txt")
    with open(report) as file:
        return rows / statistics.median(json.load(file)[1:])


def data(rows):
    folder = os.path.join(ROOT, ".cache", "bench", f"multislot-{rows}-100000")
    if not os.path.exists(os.path.join(folder, "done")):
        subprocess.run([sys.executable, os.path.join(os.path.dirname(FOLDER), "gen_multislot.py"), folder,
                        f"--rows={rows}"],
                       check=True)
        open(os.path.join(folder, "done"), "w").close()
    return folder


def report_of(program, arguments):
    """What a bench of one round prints."""
    bench = subprocess.run([program, str(arguments.batch), str(arguments.threads), "1"], check=True,
                           text=True,
                           stdout=subprocess.PIPE, timeout=LIMIT, env=environment())
    return json.loads(bench.stdout)


def one_round(rows, arguments):
    """{side: examples/s}."""
    figures = report_of(BENCH, arguments)
    figures.pop("loss")
    if arguments.threads > 1:
        replicas = report_of(REPLICAS_BENCH, arguments)
        figures.update(one_replica=replicas["one"][0], replicas=replicas["several"][0])
    script, folder = os.path.join(FOLDER, "train_in_memory.py"), data(rows)
    if os.path.exists(OURS):
        where = subprocess.run([OURS, "-c", "import fleetrun; print(fleetrun.__path__[0])"], text=True,
                               check=True,
                               stdout=subprocess.PIPE).stdout.strip()
        figures["train_from_dataset"] = rate([OURS, script, "--data", folder], rows, arguments,
                                             PYTHONPATH=os.path.join(where, "_compat"))
    if "torch" not in arguments.without:
        torch = os.path.join(peers.folder_of("torch"), "bin", "python")
        figures["torch"] = rate([torch, os.path.join(FOLDER, "torch_steps.py"), "--rows", str(rows)], rows,
                                arguments,
                                OMP_NUM_THREADS=str(arguments.threads))
    if "paddle" not in arguments.without:
        paddle = os.path.join(peers.folder_of("paddle26"), "bin", "python")
        figures["paddle"] = rate([paddle, script, "--data", folder], rows, arguments)
    return figures


def ratio(rounds, one, other):
    all_of_them = [figures[one] / figures[other] for figures in rounds if one in figures and other in figures]
    if not all_of_them:
        return
    print(f"{one} / {other}: {statistics.median(all_of_them):.2f} ({min(all_of_them):.2f} to "
          f"{max(all_of_them):.2f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without", default="", help="torch, paddle, or both with a comma")
    arguments = parser.parse_args()
    for program in (BENCH, REPLICAS_BENCH):
        if not os.path.exists(program):
            fail(f"no {program}",
                 f"meson configure build -Dbench=enabled && ninja -C build {os.path.relpath(program, BUILD)}")
    for name, peer in (("torch", "torch"), ("paddle", "paddle26")):
        if name not in arguments.without:
            peers.make(peer)
    os.makedirs(WORK, exist_ok=True)
    rows = {4: 4000, 32: 16000}.get(arguments.batch, 40 * arguments.batch)
    rounds = []
    for index in range(arguments.rounds):
        rounds.append(one_round(rows, arguments))
        print(f"{index + 1}/{arguments.rounds}: " + ", ".join(f"{name} {value:,.0f}"
                                                              for name, value in rounds[-1].items()),
              flush=True)
    print(f"batch {arguments.batch}, threads {arguments.threads}, examples/s:")
    for name in rounds[0]:
        values = [figures[name] for figures in rounds]
        print(f"  {name:20} {statistics.median(values):10,.0f} ({min(values):,.0f} to {max(values):,.0f})")
    for other in ("products", "without_passes", "torch", "paddle"):
        ratio(rounds, "engine", other)
    for other in ("torch", "paddle"):
        ratio(rounds, "train_from_dataset", other)
    ratio(rounds, "replicas", "one_replica")


if __name__ == "__main__":
    main()

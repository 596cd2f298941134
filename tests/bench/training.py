#!/usr/bin/env python3
"""usage: scripts/bench ps  [--repetitions=N] [--rows=N]

Measures training beside Paddle 2.6.2, alternating, in one run.

  ps            examples/s of asynchronous training, one server, one and two trainers, layers of 32 and 400 x
                400 x 400 (tests/bench/ps/ctr_dnn.py): over shared memory, a unix socket and TCP, and without
                a server; before that what a batch costs on its way, and how a step grows with servers,
                trainers and the network's delay (ps_wire_bench and ps_scale_bench,
                of a build with -Dbench=enabled in `build`)

Both sides run the same script on the same files, one after the other, on the same two cores, with one thread
for matrix products. A figure is the median over repetitions of the fastest pass of each, the first pass left
out; the ratio is that of the two sides of one repetition: median, and the smallest and largest in brackets.
Ours is .venv/bin/fleetrun; scripts/build makes it. Paddle is
where `scripts/bench setup-peers paddle26` puts it.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time

import peers

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(BENCH))
CACHE = os.path.join(ROOT, ".cache")
OURS = os.path.join(ROOT, ".venv", "bin")
PEERS = peers.folder_of("paddle26")
LIMIT = 300  # seconds for one run


def fail(text):
    sys.exit(f"bench: error: {text}")


def data(rows, vocabulary=100_000):
    """A folder with `rows` lines in four files, the same for everybody."""
    folder = os.path.join(CACHE, "bench", f"multislot-{rows}-{vocabulary}")
    if not os.path.exists(os.path.join(folder, "done")):
        subprocess.run([sys.executable, os.path.join(BENCH, "gen_multislot.py"), folder, f"--rows={rows}",
                        f"--vocabulary={vocabulary}"], check=True)
        open(os.path.join(folder, "done"), "w").close()
    return folder


def passes(argv, folder, bin_folder, more_path=(), more_environ=None, trainers=1):
    """Runs argv + [--data, --report] until the report is there; the seconds of each of its passes. With
    several trainers each writes a report of its own: the seconds in
    which one would have done what they do together."""
    work = os.path.join(CACHE, "bench", "run")
    os.makedirs(work, exist_ok=True)
    report, log = os.path.join(work, "report.json"), os.path.join(work, "output.txt")
    reports = [report] if trainers == 1 else [f"{report}.{rank}" for rank in range(trainers)]
    for path in reports:
        if os.path.exists(path):
            os.remove(path)
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("PADDLE_", "FLEETRUN_"))}
    clean.update(OMP_NUM_THREADS="1", GLOG_minloglevel="2", PATH=bin_folder + os.pathsep + clean["PATH"])
    clean.update(more_environ or {})
    if more_path:
        clean["PYTHONPATH"] = os.pathsep.join(more_path)
    two_cores = sorted(os.sched_getaffinity(0))[:2]
    with open(log, "w") as output:
        process = subprocess.Popen([*argv, "--data", folder, "--report", report], cwd=work, env=clean,
                                   stdout=output,
                                   stderr=subprocess.STDOUT,
                                   preexec_fn=lambda: os.sched_setaffinity(0, two_cores))
    deadline = time.monotonic() + LIMIT
    while process.poll() is None and not all(map(os.path.exists, reports)) and time.monotonic() < deadline:
        time.sleep(0.05)
    try:  # Paddle's launcher never ends a parameter-server job by itself: ask it to
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        process.wait()
    if not all(map(os.path.exists, reports)):
        fail(f"{' '.join(argv)} wrote no report (status {process.returncode}); its output: {log}, {work}/log")
    seconds = []
    for path in reports:
        with open(path) as file:
            seconds.append(json.load(file))
    return [1 / sum(1 / one for one in of_pass) for of_pass in zip(*seconds)]


def compare(name, rows, repetitions, ours, peer):
    """Prints rows/s of both and their ratio."""
    figures = []
    for index in range(repetitions):
        pair = [rows / min(side()[1:]) for side in ((ours, peer) if index % 2 == 0 else (peer, ours))]
        figures.append(pair if index % 2 == 0 else pair[::-1])
        print(
            f"{name} {index + 1}/{repetitions}: fleetrun {figures[-1][0]:,.0f}/s, Paddle 2.6.2 "
            f"{figures[-1][1]:,.0f}/s",
              flush=True)
    ratios = [one / other for one, other in figures]
    print(f"{name}: fleetrun {statistics.median(pair[0] for pair in figures):,.0f}/s, "
          f"Paddle 2.6.2 {statistics.median(pair[1] for pair in figures):,.0f}/s, "
          f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f})")


def prepare_sides():
    if not os.path.exists(os.path.join(OURS, "fleetrun")):
        subprocess.run([os.path.join(ROOT, "scripts", "build")], check=True)
    peers.make("paddle26")


def bench_wire():
    bench = os.path.join(ROOT, "build", "tests", "bench", "ps_wire_bench")
    if os.path.exists(bench):
        subprocess.run([bench], check=True, stderr=subprocess.DEVNULL)
    else:
        print(f"no {bench}: meson configure build -Dbench=enabled && ninja -C build "
              "tests/bench/ps_wire_bench")


def bench_scale():
    bench = os.path.join(ROOT, "build", "tests", "bench", "ps_scale_bench")
    if not os.path.exists(bench):
        return
    plot = os.path.join(CACHE, "bench", "ps-scale.svg")
    lines = subprocess.run([bench], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    subprocess.run([sys.executable, os.path.join(BENCH, "ps", "scale_plot.py"), plot], input=lines,
                   check=True)
    print(f"plot: {plot}")


def bench_ps(rows, repetitions):
    prepare_sides()
    bench_wire()
    bench_scale()
    folder, script = data(rows), os.path.join(BENCH, "ps", "ctr_dnn.py")
    alias = subprocess.run([os.path.join(OURS, "python"), "-c",
                            "import fleetrun; print(fleetrun.__path__[0])"], text=True,
                           capture_output=True, check=True).stdout.strip() + "/_compat"
    for hidden in ("32", "400,400,400"):
        def local():
            return passes([os.path.join(OURS, "python"), script, "--local", "--hidden", hidden], folder, OURS,
                          [alias])

        for transport, trainers in (("shm", 1), ("unix", 1), ("tcp", 1), ("shm", 2)):
            job = ["--server_num=1", f"--trainer_num={trainers}"]

            def ours():
                return passes([os.path.join(OURS, "fleetrun"), *job, "--compat=paddle", script, "--hidden",
                               hidden], folder,
                              OURS, (), {"FLEETRUN_PS_TRANSPORT": transport}, trainers)

            def theirs():
                return passes([os.path.join(PEERS, "bin", "python"), "-m", "paddle.distributed.launch", *job,
                               script,
                               "--hidden", hidden], folder, os.path.join(PEERS, "bin"), trainers=trainers)

            compare(f"ps, layers {hidden}, {transport}, 1 server, trainers: {trainers}", rows, repetitions,
                    ours, theirs)
        with_server, alone = [], []
        for _ in range(repetitions):
            with_server.append(rows / min(passes(
                [os.path.join(OURS, "fleetrun"), "--server_num=1", "--trainer_num=1", "--compat=paddle",
                 script, "--hidden",
                 hidden], folder, OURS)[1:]))
            alone.append(rows / min(local()[1:]))
        print(
            f"ps, layers {hidden}, beside one process without a server: "
              f"{statistics.median(with_server):,.0f}/s and {statistics.median(alone):,.0f}/s, "
              f"{statistics.median(with_server) / statistics.median(alone):.0%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    parser.add_argument("--repetitions", type=int, default=5, help="runs of each side (5)")
    parser.add_argument("--rows", type=int, default=100_000, help="examples in the data (100000)")
    arguments = parser.parse_args()
    bench_ps(arguments.rows, arguments.repetitions)


if __name__ == "__main__":
    main()

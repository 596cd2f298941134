#!/usr/bin/env python3
"""usage: scripts/bench dataset  [--repetitions=N] [--rows=N] [--only=TEXT]

Measures what datasets cost, beside Paddle 3.3.1 and beside what the machine allows, alternating, in one run:

  parse         the parser from memory, memory itself, a pipe itself (dataset_bench,
                of a build with -Dbench=enabled in `build`)
  queue         QueueDataset to batches under a program of one mean, 1 and 2 threads
  memory        InMemoryDataset: loading, the memory that it adds, local_shuffle
  generator     a MultiSlotDataGenerator in Python: lines/s, and what is left when the user's own
                generate_sample is taken off
  reader        raw text of Criteo's shape by a schema: to batches, and as text (fleetrun data read)
  columnar      the columnar cache: written once, then read
  scale         MB/s by threads and by the length of a line, with a plot

Both sides read the same file of 1,000,000 lines (13 floats, 26 slots of one id, a label) on the same two
cores. A figure is the median over repetitions of the fastest pass of each; a ratio is that of the two sides
of one repetition: median, and the smallest and largest in brackets. Ours is .venv/bin/fleetrun; scripts/build
makes it. Paddle 3.3.1 is where `scripts/bench setup-peers paddle33` puts it.
"""

import argparse
import contextlib
import glob
import json
import os
import statistics
import subprocess
import sys
import time

import peers
import training

BENCH, ROOT, CACHE = training.BENCH, training.ROOT, training.CACHE
NATIVE = os.path.join(ROOT, "build", "tests", "bench", "dataset_bench")
LIMIT = 600  # seconds for one run


def quietly(argv, environment=None, to=None, **options):
    """Runs a program on the first two cores, to its end;
    its standard output, unless that goes to the file `to`."""
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("PADDLE_", "FLEETRUN_"))}
    clean.update(OMP_NUM_THREADS="1", GLOG_minloglevel="2", **(environment or {}))
    two_cores = sorted(os.sched_getaffinity(0))[:2]
    work = os.path.join(CACHE, "bench", "run")
    os.makedirs(work, exist_ok=True)
    with open(to, "wb") if to else contextlib.nullcontext(subprocess.PIPE) as output:
        done = subprocess.run(argv, env=clean, cwd=work, stdout=output, stderr=subprocess.PIPE, timeout=LIMIT,
                              **options,
                              preexec_fn=lambda: os.sched_setaffinity(0, two_cores))
    if done.returncode:
        training.fail(f"{' '.join(map(str, argv))} ended with {done.returncode}:\n"
                      f"{done.stderr.decode()[-2000:]}")
    return done.stdout


def our_python():
    return os.path.join(training.OURS, "python")


def alias():
    """Where the package is that answers to `import paddle`."""
    return quietly([our_python(), "-c",
                    "import fleetrun; print(fleetrun.__path__[0])"]).decode().strip() + "/_compat"


def sides():
    """(name, interpreter, environment) of both."""
    return [("fleetrun", our_python(),
             {"PYTHONPATH": alias(), "PATH": training.OURS + os.pathsep + os.environ["PATH"]}),
            ("Paddle 3.3.1", os.path.join(peers.folder_of("paddle33"), "bin", "python"),
             {"FLAGS_enable_pir_api": "0"})]


def alternate(repetitions, run):
    """[(ours, theirs)] of run(side), each round in the other order than the one before."""
    pairs = []
    for index in range(repetitions):
        order = sides() if index % 2 == 0 else sides()[::-1]
        pair = [run(*side) for side in order]
        pairs.append(tuple(pair if index % 2 == 0 else pair[::-1]))
    return pairs


def median(values):
    return statistics.median(values)


def row(what, ours, theirs="–", ratio="–"):
    print(f"| {what} | {ours} | {theirs} | {ratio} |", flush=True)


def ratios(values):
    return f"{median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def dataset_pass(folder, *options):
    """run(side) of dataset_pass.py; its report."""
    def run(_, python, environment):
        report = os.path.join(CACHE, "bench", "dataset-report.json")
        quietly([python, os.path.join(BENCH, "dataset_pass.py"), "--data", folder, "--report", report,
                 *options], environment)
        with open(report) as file:
            return json.load(file)

    return run


def native_rows(*words):
    """The figures of dataset_bench as rows."""
    if not os.path.exists(NATIVE):
        print(f"no {NATIVE}: meson configure build -Dbench=enabled && ninja -C build "
              "tests/bench/dataset_bench")
        return
    for line in quietly([NATIVE, *words]).decode().splitlines():
        one = json.loads(line)
        cycles = f", {one['cycles_per_byte']:.2f} cycles a byte" if one["name"].startswith("parser") else ""
        row(one["name"] + ": MB/s", f"{one['bytes_per_second'] / 1e6:,.0f} "
            f"({one['lowest'] / 1e6:,.0f} to {one['highest'] / 1e6:,.0f}){cycles}")


def bench_parse(folder, size, repetitions):
    native_rows("table", *files(folder))


def bench_queue(folder, size, repetitions):
    for threads in (1, 2):
        pairs = [[size / min(side["seconds"][1:]) / 1e6 for side in pair] for pair in
                 alternate(repetitions, dataset_pass(folder, "--what=queue", "--epochs=3",
                                                     f"--threads={threads}"))]
        row(f"QueueDataset to batches, threads: {threads}: MB/s", f"{median(one for one, _ in pairs):,.0f}",
            f"{median(other for _, other in pairs):,.0f}", ratios([one / other for one, other in pairs]))


def bench_memory(folder, size, repetitions):
    for threads in (1, 2):
        pairs = alternate(repetitions, dataset_pass(folder, "--what=memory", "--epochs=3",
                                                    f"--threads={threads}"))
        speeds = [[size / min(side["seconds"]) / 1e6 for side in pair] for pair in pairs]
        row(f"load_into_memory, threads: {threads}: MB/s", f"{median(one for one, _ in speeds):,.0f}",
            f"{median(other for _, other in speeds):,.0f}", ratios([one / other for one, other in speeds]))
        shuffles = [[min(side["shuffle"]) for side in pair] for pair in pairs]
        row(f"local_shuffle, threads: {threads}: seconds", f"{median(one for one, _ in shuffles):.3f}",
            f"{median(other for _, other in shuffles):.3f}", ratios([other / one for one, other in shuffles]))
        if threads == 1:
            added = [[side["added"] / 1e6 for side in pair] for pair in pairs]
            row("memory added by loading: MB", f"{median(one for one, _ in added):,.0f}",
                f"{median(other for _, other in added):,.0f}", ratios([other / one for one, other in added]))


def raw_text(rows):
    """A file of raw text of Criteo's shape, the same for everybody."""
    folder = os.path.join(CACHE, "bench", f"criteo-{rows}")
    path = os.path.join(folder, "part-00.txt")
    if not os.path.exists(path):
        subprocess.run([sys.executable, os.path.join(ROOT, "examples", "criteo", "make_data.py"), "--out",
                        folder, "--files=1",
                        f"--rows={rows}", "--vocabulary=100000"], check=True)
    return path


def bench_generator(folder, size, repetitions):
    rows = 50_000
    raw, script = raw_text(rows), os.path.join(BENCH, "dataset_reader.py")

    def measure(_, python, environment):
        report = os.path.join(CACHE, "bench", "reader-report.json")
        quietly([python, script, "--measure", raw, report], environment)
        with open(report) as file:
            return json.load(file)

    pairs = alternate(repetitions, measure)
    per_line = [[(side["whole"] - side["users"]) / rows * 1e6 for side in pair] for pair in pairs]
    row("generator in Python, all but generate_sample: µs a line",
        f"{median(one for one, _ in per_line):.2f}",
        f"{median(other for _, other in per_line):.2f}", ratios([other / one for one, other in per_line]))
    row("generator in Python, one process, start not counted: lines/s",
        f"{median(rows / one['whole'] for one, _ in pairs):,.0f}",
        f"{median(rows / other['whole'] for _, other in pairs):,.0f}",
        ratios([other["whole"] / one["whole"] for one, other in pairs]))
    users = median(one["users"] / rows * 1e6 for one, _ in pairs)
    row("… of which generate_sample: µs a line", f"{users:.2f}",
        f"{median(other['users'] / rows * 1e6 for _, other in pairs):.2f}")
    for processes in (1, 2):
        def job(name, python, environment):
            start = time.monotonic()
            with open(raw, "rb") as text:
                quietly([python, script], {**environment, "FLEETRUN_READER_PROCESSES": str(processes)},
                        stdin=text)
            return rows / (time.monotonic() - start)

        pairs = alternate(repetitions, job)
        row(f"python reader.py < raw, start included, processes: {processes} (Paddle: 1): lines/s",
            f"{median(one for one, _ in pairs):,.0f}", f"{median(other for _, other in pairs):,.0f}",
            ratios([one / other for one, other in pairs]))


def bench_reader(folder, size, repetitions):
    raw, schema = raw_text(200_000), os.path.join(ROOT, "examples", "criteo", "criteo.json")
    native_rows("reader", schema, *[raw] * 8)
    size, speeds = os.path.getsize(raw), []
    for _ in range(repetitions):
        start = time.monotonic()
        quietly([os.path.join(training.OURS, "fleetrun"), "data", "read", f"--schema={schema}", *[raw] * 8],
                to="/dev/null")
        speeds.append(8 * size / (time.monotonic() - start) / 1e6)
    row("fleetrun data read > /dev/null: MB/s of raw text",
        f"{median(speeds):,.0f} ({min(speeds):,.0f} to {max(speeds):,.0f})")


SLOTS = ["--slots=dense:float32[13]", *(f"--slots=C{i}:int64" for i in range(26)), "--slots=label:int64[1]"]


def bench_columnar(folder, size, repetitions):
    columns = os.path.join(CACHE, "bench", "columns.frc")
    seconds = []
    for _ in range(repetitions):
        start = time.monotonic()
        quietly([os.path.join(training.OURS, "fleetrun"), "data", "convert", *files(folder), *SLOTS,
                 f"--out={columns}"])
        seconds.append(time.monotonic() - start)
    row("fleetrun data convert: MB/s of text", f"{size / median(seconds) / 1e6:,.0f} "
        f"({size / max(seconds) / 1e6:,.0f} to {size / min(seconds) / 1e6:,.0f})")
    row("size of the columns: MB", f"{os.path.getsize(columns) / 1e6:,.1f} of {size / 1e6:,.1f}")
    text = os.path.join(CACHE, "bench", "columns.txt")
    with open(text, "wb") as whole:
        subprocess.run(["cat", *files(folder)], check=True, stdout=whole)
    for line in quietly([NATIVE.replace("dataset_bench", "dataset_columnar_bench"), text,
                         columns]).decode().splitlines():
        name, _, figure = line.partition("  ")
        row(name, figure.strip() or "–")
    os.remove(text)


def bench_scale(folder, size, repetitions):
    if not os.path.exists(NATIVE):
        return
    plot, work = os.path.join(CACHE, "bench", "dataset-scale.svg"), os.path.join(CACHE, "bench", "scale")
    os.makedirs(work, exist_ok=True)
    lines = quietly([NATIVE, "scale", work])
    subprocess.run([sys.executable, os.path.join(BENCH, "dataset_plot.py"), plot], input=lines, check=True)
    print(f"plot: {plot}")


def files(folder):
    return sorted(glob.glob(os.path.join(folder, "part-*")))


PARTS = {"parse": bench_parse, "queue": bench_queue, "memory": bench_memory, "generator": bench_generator,
         "reader": bench_reader,
         "columnar": bench_columnar,
         "scale": bench_scale}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    parser.add_argument("--repetitions", type=int, default=5, help="runs of each side (5)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="lines of the file (1000000)")
    parser.add_argument("--only", choices=list(PARTS), help="one part")
    arguments = parser.parse_args()
    if not os.path.exists(os.path.join(training.OURS, "fleetrun")):
        subprocess.run([os.path.join(ROOT, "scripts", "build")], check=True)
    peers.make("paddle33")
    folder = training.data(arguments.rows, vocabulary=1_000_000)  # 355 bytes a line
    size = sum(map(os.path.getsize, files(folder)))
    print(f"{arguments.rows:,} lines, {size / 1e6:,.1f} MB; load of the machine before: "
          f"{os.getloadavg()[0]:.2f}\n")
    row("what", "fleetrun", "Paddle 3.3.1", "ratio")
    row("---", "---", "---", "---")
    for name, bench in PARTS.items():
        if arguments.only in (None, name):
            bench(folder, size, arguments.repetitions)


if __name__ == "__main__":
    main()

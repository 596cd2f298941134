#!/usr/bin/env python3
"""usage: scripts/bench collective [--ranks=2,4] [--sizes=BYTES,…] [--rounds=N] [--in-place]
                                [--only=calls|backend]

Measures all_reduce of float32 (sum) between processes of one host over shared memory, beside Open MPI, Gloo
(ring and bcube, loopback TCP) and PyTorch's Gloo, in one run, taking turns;
and what the machine's memory allows (calls). Then backend "fleetrun" of torch.distributed beside gloo: send,
all_to_all, and steps of DistributedDataParallel (backend).

A row has the form of nccl-tests: size, count, type, redop, time, algbw, busbw, #wrong. A time is the median
over rounds of medians over batches of calls that follow each other (tests/bench/collective/reduce_rows.h);
input and output are different buffers unless --in-place (PyTorch has nothing but in place). #wrong counts
elements of rank 0's result that are not exact. busbw = algbw × 2(n-1)/n.

Ours is collective_shared_bench of a build with -Dbench=enabled in `build`. The peers are built here: Open
MPI's by mpicxx, Gloo's with Debian's libgloo-dev, PyTorch is where `scripts/bench setup-peers torch` puts it;
one that is missing is left out.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(HERE.parent)]

import backend_table  # noqa: E402
import peers  # noqa: E402

OURS = ROOT / "build" / "tests" / "bench" / "collective_shared_bench"
SIZES = [4096, 16384, 65536, 262144, 1 << 20, 4 << 20, 32 << 20, 128 << 20]
LIMIT = 300  # seconds for one program


def build_peers(folder):
    """{name: whether it could be built}; what is missing is said."""
    flags = ["-O2", "-std=c++20", f"-I{ROOT}"]
    builds = {
        "mpi_peer": ["mpicxx", *flags, str(HERE / "mpi_peer.cc"), "-o", f"{folder}/mpi_peer"],
        "gloo_peer": ["g++", *flags, str(HERE / "gloo_peer.cc"), "-o", f"{folder}/gloo_peer", "-lgloo",
                      "-lpthread"],
    }
    built = {}
    for name, command in builds.items():
        done = (shutil.which(command[0]) and subprocess.run(command, capture_output=True, text=True,
                                                            check=False))
        built[name] = bool(done) and done.returncode == 0
        if not built[name]:
            print(f"{name} cannot be built ({command[0]}, libopenmpi-dev, libgloo-dev): left out")
    if not peers.is_there("torch"):
        print("PyTorch is not there (scripts/bench setup-peers torch): left out")
    return built


def rows_of(commands):
    """{bytes: (microseconds, wrong)} of what the first of some processes that run together prints."""
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
               for command in commands]
    texts = [process.communicate(timeout=LIMIT)[0] for process in running]
    if any(process.returncode for process in running):
        sys.exit(f"bench: error: {' '.join(map(str, commands[0]))} failed")
    words = [line.split() for line in texts[0].splitlines() if line.startswith("row ")]
    return {int(size): (float(time), int(wrong)) for _, size, time, wrong in words}


def sides(built, ranks, how, sizes, folder):
    """(name, what measures it) for all sides that are there."""
    words = [how, *map(str, sizes)]
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
    mpirun += ["--bind-to", "core" if ranks <= os.cpu_count() else "none", "-np", str(ranks),
               f"{folder}/mpi_peer"]

    def gloo(algorithm):
        with tempfile.TemporaryDirectory(dir=folder) as store:
            return rows_of([[f"{folder}/gloo_peer", store, str(r), str(ranks), algorithm, *words]
                            for r in range(ranks)])

    def torch():
        python = os.path.join(peers.folder_of("torch"), "bin", "python")
        with tempfile.TemporaryDirectory(dir=folder) as store:
            return rows_of([[python, str(HERE / "torch_peer.py"), f"{store}/store", str(r), str(ranks),
                             *words]
                            for r in range(ranks)])

    found = [("fleetrun", lambda: rows_of([[str(OURS), str(ranks), *words]]))]
    if built["mpi_peer"]:
        found.append(("Open MPI", lambda: rows_of([[*mpirun, *words]])))
    if built["gloo_peer"]:
        found += [("Gloo ring", lambda: gloo("ring")), ("Gloo bcube", lambda: gloo("bcube"))]
    if peers.is_there("torch"):
        found.append(("PyTorch gloo", torch))
    return found


def print_rows(name, ranks, results, sizes):
    """nccl-tests' table of one side; {size: microseconds}."""
    print(f"\n# {name}, {ranks} ranks")
    print(f"#{'size (B)':>12} {'count':>10} {'type':>7} {'redop':>6} {'time (us)':>12} {'algbw':>8} "
          f"{'busbw':>8} {'#wrong':>7}")
    times = {}
    for size in sizes:
        times[size] = statistics.median(result[size][0] for result in results)
        bandwidth = size / times[size] / 1e3
        wrong = max(result[size][1] for result in results)
        print(f"{size:13} {size // 4:10} {'float':>7} {'sum':>6} {times[size]:12.1f} {bandwidth:8.2f} "
              f"{bandwidth * 2 * (ranks - 1) / ranks:8.2f} {wrong:7}")
    return times


def print_ratios(times, sizes):
    print("\n# time of the others / fleetrun's")
    print("#" + f"{'size (B)':>12}" + "".join(f"{name:>14}" for name in times if name != "fleetrun"))
    for size in sizes:
        ratios = [times[name][size] / times["fleetrun"][size] for name in times if name != "fleetrun"]
        print(f"{size:13}" + "".join(f"{ratio:13.2f}x" for ratio in ratios))


def print_limits():
    text = subprocess.run([str(OURS), "limits"], capture_output=True, text=True, check=True,
                          timeout=LIMIT).stdout
    limits = {(kind, int(threads)): float(rate)
              for _, kind, threads, rate in map(str.split, text.splitlines())}
    print("\n# memory, 128 MiB buffers, GB/s read and written: " +
          ", ".join(f"{kind} {threads} threads {rate:.1f}" for (kind, threads), rate in limits.items()))
    # Each of two ranks reduces half of both inputs (3 halves of traffic) and copies the other half (2).
    print(f"# so 2 ranks with buffers of their own could reach {limits['add', 2] / 5:.2f} GB/s: "
          "5 bytes for each byte")


def compare_calls(ranks, how, sizes, rounds, built, folder):
    found = sides(built, ranks, how, sizes, folder)
    results = {name: [] for name, _ in found}
    for _ in range(rounds):
        for name, measured in found:
            results[name].append(measured())
    print_ratios({name: print_rows(name, ranks, results[name], sizes) for name, _ in found}, sizes)
    sys.stdout.flush()


def main():
    options = {"ranks": "2,4", "sizes": ",".join(map(str, SIZES)), "rounds": "3", "only": "calls,backend"}
    how = "out"
    for word in sys.argv[1:]:
        name, _, value = word.removeprefix("--").partition("=")
        if word in ("-h", "--help"):
            print(__doc__)
            return 0
        if word == "--in-place":
            how = "in"
        elif name in options and value:
            options[name] = value
        else:
            sys.exit(f"bench: error: unknown argument {word}\n  hint: scripts/bench collective --help")
    parts, rounds = options["only"].split(","), int(options["rounds"])
    if "calls" in parts and not OURS.exists():
        sys.exit(f"bench: error: there is no {OURS}\n  hint: meson configure build -Dbench=enabled && "
                 "ninja -C build tests/bench/collective_shared_bench; or --only=backend")
    with tempfile.TemporaryDirectory() as folder:
        if OURS.exists():
            print_limits()
        built = build_peers(folder) if "calls" in parts else {}
        for ranks in map(int, options["ranks"].split(",")):
            if "calls" in parts:
                compare_calls(ranks, how, [int(size) for size in options["sizes"].split(",")], rounds, built,
                              folder)
            if "backend" in parts and peers.is_there("torch"):
                backend_table.print_table(ranks, rounds, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())

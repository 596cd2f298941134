#!/usr/bin/env python3
"""What a launch costs: wall time and peak memory of `fleetrun --nproc_per_node N /bin/true`, beside its peers.

The measure of all is a bare loop that spawns N processes with posix_spawn and waits for them. Runs of the peers are
interleaved, so that a busy moment of the machine hits all of them. Memory is the peak of the launcher's own processes
(VmHWM of fleetrun and of fleetrun-init, added), read while the job's processes sleep; their own is not counted.

  launch_bench.py [--fleetrun PATH] [--paddle VENV] [-n 8] [--runs 30] [--json]
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIET = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_WRONLY, 0) for fd in (1, 2)]


def spawn_and_wait(argv):
    """Seconds from posix_spawn to the end of the command."""
    begin = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=QUIET)
    _, status = os.waitpid(pid, 0)
    seconds = time.perf_counter() - begin
    if status:
        sys.exit(f"launch_bench: error: {' '.join(argv)} ended with status {status}")
    return seconds


def bare_loop(count):
    begin = time.perf_counter()
    pids = [os.posix_spawn("/bin/true", ["/bin/true"], os.environ) for _ in range(count)]
    for pid in pids:
        os.waitpid(pid, 0)
    return time.perf_counter() - begin


def children_of(pid):
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(entry))
        except OSError:
            pass
    return found


def peak_kib(pid):
    """VmHWM: the most memory that the process has held since its exec."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


def launcher_memory(argv, count, own_children):
    """Peak KiB of the launcher, and of as many levels below it as are its own, while `count` processes sleep."""
    launcher = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while True:
            own = [launcher.pid] + (children_of(launcher.pid) if own_children else [])
            if len(children_of(own[-1])) == count:
                return sum(peak_kib(pid) for pid in own)
            if launcher.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"launch_bench: error: {' '.join(argv)} did not start {count} processes")
            time.sleep(0.01)
    finally:
        launcher.send_signal(signal.SIGTERM)
        launcher.wait()


def summary(seconds):
    ms = [1000 * s for s in seconds]
    return {"median": statistics.median(ms), "min": min(ms), "max": max(ms), "runs": len(ms)}


def measure(options):
    launch = [options.fleetrun, f"--nproc_per_node={options.n}"]
    peers = {"posix_spawn loop": lambda: bare_loop(options.n), "fleetrun": lambda: spawn_and_wait([*launch, "/bin/true"])}
    memory = {"fleetrun": launcher_memory([*launch, "/bin/sleep", "100"], options.n, own_children=True)}
    if options.paddle:
        theirs = [f"{options.paddle}/bin/python", "-m", "paddle.distributed.launch", "--nproc_per_node", str(options.n)]
        peers["Paddle's launcher"] = lambda: spawn_and_wait([*theirs, "/bin/true"])
        memory["Paddle's launcher"] = launcher_memory([*theirs, "/bin/sleep", "100"], options.n, own_children=False)
    seconds = {name: [] for name in peers}
    for run in range(options.runs):
        for name, peer in peers.items():
            if name.startswith("Paddle") and run >= 5:
                continue  # seconds each
            seconds[name].append(peer())
    result = {name: {"wall_ms": summary(times), "peak_kib": memory.get(name)} for name, times in seconds.items()}
    loop = result["posix_spawn loop"]["wall_ms"]["median"]
    for row in result.values():
        row["times_the_loop"] = row["wall_ms"]["median"] / loop
    return result


def show(result, count):
    print(f"{count} processes of /bin/true; wall time in ms, memory of the launcher's own processes")
    print(f"{'':20}{'median':>9}{'min':>9}{'max':>9}{'runs':>6}{'x loop':>8}{'peak MB':>9}")
    for name, row in result.items():
        wall, peak = row["wall_ms"], row["peak_kib"]
        memory = f"{peak / 1024:9.1f}" if peak else f"{'-':>9}"
        print(
            f"{name:20}{wall['median']:9.1f}{wall['min']:9.1f}{wall['max']:9.1f}{wall['runs']:6}"
            f"{row['times_the_loop']:8.2f}{memory}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("FLEETRUN_BIN") or shutil.which("fleetrun") or ROOT / "build" / "cli" / "fleetrun"
    parser.add_argument("--fleetrun", default=str(default), help="the fleetrun to measure")
    parser.add_argument("--paddle", help="a virtual environment with paddlepaddle, to measure its launcher too")
    parser.add_argument("-n", type=int, default=8, help="processes per launch")
    parser.add_argument("--runs", type=int, default=30, help="launches of each")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    options = parser.parse_args()
    options.fleetrun = os.path.abspath(options.fleetrun)
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)  # the logs go here
        result = measure(options)
        os.chdir("/")
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        show(result, options.n)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""usage: scripts/bench cluster meeting [--rounds N] [--agents "N N ..."]

How long hosts take to meet. First two launchers on this machine, on addresses of their own, with --master:
from their start until both processes run, and from the second launcher's "waiting" to its world, which is the
meeting alone; beside torchrun where it is installed (scripts/bench setup-peers torch). Then agents by the
thousand, authentication included, where tests/bench/rendezvous_bench is built
(meson configure -Dbench=enabled).
"""

import argparse
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "bench")]

import peers  # noqa: E402
from fleetrun_job import clean_environment, find_fleetrun, wait_until  # noqa: E402

PROCESS = '#!/bin/sh\ncd "$1" && : > ".$$" && mv ".$$" "$RANK"\n'
MOMENT = re.compile(r"LAUNCH INFO \S+ (\d+):(\d+):(\d+),(\d+) (Waiting peer start|epoch 1: )")


def free_port(address):
    with socket.create_server((address, 0)) as server:
        return server.getsockname()[1]


def fleetrun(number, port):
    return [find_fleetrun(), f"--master=127.0.0.1:{port}", f"--host=127.0.0.{number}", "--nnodes=2",
            "--nproc_per_node=1"]


def torchrun(number, port):
    return [f"{peers.folder_of('torch')}/bin/torchrun", "--rdzv-backend=c10d",
            f"--rdzv-endpoint=127.0.0.1:{port}", "--nnodes=2",
            "--nproc-per-node=1", f"--local-addr=127.0.0.{number}", "--no-python"]


def moments(text):
    """Seconds of the day at which a launcher began to wait, and at which it knew its world."""
    return {found[5]: int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3]) + int(found[4]) / 1000
            for found in MOMENT.finditer(text)}


def meet(argv, directory):
    """Seconds from the start of both launchers until both processes run; what the second one said."""
    started = directory / "started"
    started.mkdir()
    script = directory / "process.sh"
    script.write_text(PROCESS)
    script.chmod(0o755)
    port = free_port("127.0.0.1")
    begin = time.monotonic()
    running = []
    for number in (1, 2):
        place = directory / str(number)
        place.mkdir()
        running.append(subprocess.Popen([*argv(number, port), script, started], cwd=place,
                                        env=clean_environment(HOME=str(directory)),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True))
    wait_until(lambda: {"0", "1"} <= set(os.listdir(started)), "both processes", 120)
    took = time.monotonic() - begin
    said = [process.communicate()[1] for process in running]
    return took, said[1]


def row(what, values, unit="ms"):
    print(f"  {what:52} {statistics.median(values):8.1f} {unit} ({min(values):.1f} to {max(values):.1f})")


def main():
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--agents", default="2 64 1024 4000")
    options = parser.parse_args()
    launchers = {"fleetrun": fleetrun}
    if peers.is_there("torch"):
        launchers["torchrun"] = torchrun
    whole, alone = {name: [] for name in launchers}, []
    for _ in range(options.rounds):
        for name, argv in launchers.items():
            with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                took, said = meet(argv, pathlib.Path(folder))
            whole[name].append(1000 * took)
            if name == "fleetrun" and len(found := moments(said)) == 2:
                alone.append(1000 * (found["epoch 1: "] - found["Waiting peer start"]))
    for name, values in whole.items():
        row(f"{name}: two launchers, from start to running processes", values)
    if alone:
        row("fleetrun: of that, the second one's meeting", alone)
    program = ROOT / "build" / "tests" / "bench" / "rendezvous_bench"
    if not program.exists():
        print("  tests/bench/rendezvous_bench is not built: meson configure build -Dbench=enabled")
        return 0
    return subprocess.run([program, *options.agents.split()]).returncode


if __name__ == "__main__":
    sys.exit(main())

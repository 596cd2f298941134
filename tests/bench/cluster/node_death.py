#!/usr/bin/env python3
"""usage: scripts/bench cluster death [--rounds N] [--hosts N]

How long an elastic job takes from the loss of a host to all processes of its new world, each having started.
The hosts are network namespaces (it needs root); a host is lost by its power: its link is cut, then all that
runs on it is killed, so that nobody is told. Alternating, in one run: fleetrun, and torchrun with its c10d
rendezvous where it is installed (scripts/bench setup-peers torch). Processes are shells that write down who
they are and sleep: nothing but the launcher can find the loss.
Who has not re-formed the job within a minute is counted with that.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "support"), str(HERE.parent)]
import hosts_rig  # noqa: E402
import peers  # noqa: E402
from fleetrun_job import find_fleetrun, wait_until  # noqa: E402

LIMIT, PATIENCE = 180, 60  # seconds: for the first world, and for the one after the loss
PROCESS = """#!/bin/sh
cd "$1" && : > ".$$" && mv ".$$" "$WORLD_SIZE.$RANK.$(uname -n).$$" && exec sleep 1000
"""


def fleetrun(hosts):
    return [find_fleetrun(), "--master=10.77.0.1:6768", f"--nnodes={hosts - 1}:{hosts}", "--max_restart=9",
            "--restart_backoff=0",
            "--nproc_per_node=1"]


def torchrun(hosts):
    return [f"{peers.folder_of('torch')}/bin/torchrun", "--rdzv-backend=c10d",
            "--rdzv-endpoint=10.77.0.1:29400", "--rdzv-id=bench",
            f"--nnodes={hosts - 1}:{hosts}", "--max-restarts=9", "--nproc-per-node=1", "--no-python"]


def world(folder, size):
    """Whether all ranks of a world of that size have started."""
    names = [path.name.split(".") for path in folder.iterdir() if not path.name.startswith(".")]
    return len({rank for number, rank, *_ in names if number == str(size)}) == size


def measure(rig, argv, hosts):
    """Seconds until the first world was complete, and from the loss of a host to the next."""
    rig.reset()
    rig.share_secret()
    folder = rig.shared / "started"
    folder.mkdir()
    script = rig.shared / "process.sh"
    script.write_text(PROCESS)
    script.chmod(0o755)
    begin = time.monotonic()
    running = []
    for host in rig.hosts:
        with open(rig.directory / f"{host.name}.said", "wb") as said:
            running.append(host.popen([*argv(hosts), script, folder], stdout=said, stderr=said))
    wait_until(lambda: world(folder, hosts), "the first world", LIMIT)
    formed = time.monotonic() - begin
    for path in folder.iterdir():  # a smaller world may have come before that one
        path.unlink()
    lost = time.monotonic()
    rig.hosts[-1].power_off()
    while not world(folder, hosts - 1) and time.monotonic() - lost < PATIENCE:
        time.sleep(0.002)
    took = time.monotonic() - lost
    for host in rig.hosts[:-1]:
        host.kill_processes()
    for process in running:
        process.wait(LIMIT)
    return formed, took


def main():
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--hosts", type=int, default=3)
    options = parser.parse_args()
    if reason := hosts_rig.why_not():
        raise SystemExit(f"bench: error: {reason}")
    launchers = {"fleetrun": fleetrun}
    if peers.is_there("torch"):
        launchers["torchrun"] = torchrun
    else:
        print("torchrun is not there: scripts/bench setup-peers torch")
    took = {name: [] for name in launchers}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, hosts_rig.Rig(folder, hosts=options.hosts,
                                                                               sshd=False) as rig:
        for _ in range(options.rounds):
            for name, argv in launchers.items():
                took[name].append(measure(rig, argv, options.hosts))
                print(f"  {name}: {options.hosts} hosts met after {took[name][-1][0]:.2f} s,"
                      f" {options.hosts - 1} went on {took[name][-1][1]:.2f} s after the loss", flush=True)
    print(f"loss of one of {options.hosts} hosts to re-formed job, s (median, "
          f"and smallest and largest of {options.rounds})")
    for name, rounds in took.items():
        lost = [seconds for _, seconds in rounds]
        late = sum(seconds >= PATIENCE for seconds in lost)
        print(f"  {name:10} {statistics.median(lost):6.2f} ({min(lost):.2f} to {max(lost):.2f})"
              + (f", {late} of them not within {PATIENCE} s" if late else ""))


if __name__ == "__main__":
    main()

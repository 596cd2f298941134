#!/usr/bin/env python3
"""usage: scripts/bench cluster hosts [--hosts=500] [--refuse=0.3] [--seed=7] [--keys=all|head] [--plan=10000]

A job over many hosts, started through an ssh that stands in for the real one (tests/support/fake_ssh.py) and
hangs up on a share of the first logins, as a busy sshd does. Every host has a real agent, a real launcher and
one process, all of them on this machine, so what is measured is mostly what this machine needs for that.
`--keys=all`: hosts may log in on each other, so that it is a tree;
`head`: they may not, and the head logs in everywhere.

Then the plan of a job that is larger: what --dry-run needs for it here, and, where
tests/bench/hosts_plan_bench is built (meson configure -Dbench=enabled),
what each host plans and hands to its processes.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from fleetrun_job import clean_environment, find_fleetrun  # noqa: E402


def start_many(directory, options, keys):
    place = directory / f"ssh-{keys}"
    started = directory / f"started-{keys}"
    place.mkdir()
    started.mkdir()
    config = {"refuse": options.refuse, "seed": options.seed, "exec": True, "nested": keys == "all"}
    (place / "config.json").write_text(json.dumps(config))
    script = directory / "once.sh"
    script.write_text(f'#!/bin/sh\n: > "{directory}/started-$KEYS/$FAKE_HOST.$$"\n')
    script.chmod(0o755)
    ssh = f"{os.path.realpath(sys.executable)} -IS {ROOT}/tests/support/fake_ssh.py"
    command = [find_fleetrun(), f"--hosts=n[1-{options.hosts}]:1", "--ssh", ssh, f"--export=KEYS={keys}",
               "--no_python", script]
    begin = time.monotonic()
    job = subprocess.Popen(command, cwd=directory, stderr=subprocess.PIPE, text=True,
                           env=clean_environment(FAKE_SSH=str(place)))
    up = None
    said = []
    for line in job.stderr:
        said.append(line)
        if up is None and re.search(r" epoch 1: ", line):
            up = time.monotonic() - begin
    status = job.wait()
    over = time.monotonic() - begin
    assert status == 0 and up is not None, "".join(said)
    hosts = collections.Counter(path.name.partition(".")[0] for path in started.iterdir())
    assert len(hosts) == options.hosts and set(hosts.values()) == {1}, "not every host started once"
    outcomes = collections.Counter(json.loads(line)[1]
                                   for line in (place / "logins").read_text().splitlines())
    print(
        f"{options.hosts} hosts, {outcomes['busy']} first logins refused, keys: {keys}: each started once; "
          f"all up after {up:.1f} s, over after {over:.1f} s")


def plan(directory, hosts):
    begin = time.monotonic()
    (directory / "train.py").write_text("")
    command = [find_fleetrun(), f"--hosts=n[1-{hosts}]:8", "--dry_run", "train.py"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True,
                          env=clean_environment())
    seconds = time.monotonic() - begin
    assert done.stdout.count("\nhost ") == hosts
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"--dry_run over {hosts} hosts: {1000 * seconds:.0f} ms, at most {peak:.0f} MiB")
    program = ROOT / "build" / "tests" / "bench" / "hosts_plan_bench"
    if program.exists():
        print(subprocess.run([program, str(hosts), "8"], capture_output=True, text=True, check=True).stdout,
              end="")


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--hosts", type=int, default=500)
    parser.add_argument("--refuse", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--keys", choices=("all", "head"))
    parser.add_argument("--plan", type=int, default=10_000)
    parser.add_argument("-h", "--help", action="store_true")
    options = parser.parse_args()
    if options.help:
        print(__doc__)
        return 0
    with tempfile.TemporaryDirectory(prefix="fleetrun-hosts-") as name:
        directory = pathlib.Path(name)
        plan(directory, options.plan)
        for keys in [options.keys] if options.keys else ("all", "head"):
            start_many(directory, options, keys)
    return 0


if __name__ == "__main__":
    sys.exit(main())

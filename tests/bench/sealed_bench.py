#!/usr/bin/env python3
"""usage: tests/bench/sealed_bench.py [--rates "1gbit 10gbit"] [--rounds N] [--seconds S]

What sealing costs (SECURITY.md): MB/s of a server and a trainer, and of two ranks, sealed and with --insecure
by turns, over a link between two network namespaces that tc holds to a rate, and over loopback. Beside them
processor seconds of both processes for each GiB. Medians; of the ratio also the smallest and the largest.
Needs root, ip and tc, and tests/bench/sealed_bench (meson configure -Dbench=enabled).
"""

import argparse
import json
import os
import pathlib
import secrets
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "tests" / "bench" / "sealed_bench"
GIB = 1 << 30
HERE, THERE = (f"fleetrun-{os.getpid()}-{end}" for end in "ab")


def run(*words):
    subprocess.run(words, check=True)


class Link:
    """Two namespaces and a pair of interfaces that let so much through; without a rate, loopback."""

    def __init__(self, rate):
        self.rate = rate
        self.address = "10.211.0.1" if rate else "127.0.0.1"

    def __enter__(self):
        if not self.rate:
            return self
        for name in (HERE, THERE):
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "fa", "netns", HERE, "type", "veth", "peer", "name", "fb", "netns", THERE)
        for name, interface, number in ((HERE, "fa", 1), (THERE, "fb", 2)):
            run("ip", "-n", name, "addr", "add", f"10.211.0.{number}/24", "dev", interface)
            run("ip", "-n", name, "link", "set", interface, "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("tc", "-n", name, "qdisc", "add", "dev", interface, "root", "tbf", "rate", self.rate,
                "burst", "8mb", "latency", "20ms")
        return self

    def __exit__(self, *_):
        if self.rate:
            for name in (HERE, THERE):
                subprocess.run(["ip", "netns", "delete", name], check=False)

    def start(self, end, *words):
        within = ["ip", "netns", "exec", end] if self.rate else []
        return subprocess.Popen([*within, PROGRAM, *map(str, words)], stdout=subprocess.PIPE, text=True)


def result(process):
    text, _ = process.communicate(timeout=300)
    if process.returncode:
        raise SystemExit(f"{process.args} ended with {process.returncode}")
    return json.loads(text.splitlines()[-1])


def servers(link, secret, seconds):
    """MB/s, and processor seconds for a GiB."""
    server = link.start(HERE, "server", f"{link.address}:0", secret)
    trainer = result(link.start(THERE, "trainer", server.stdout.readline().strip(), secret, seconds))
    processor = trainer["processor"] + result(server)["processor"]
    return trainer["bytes"] / trainer["seconds"] / 1e6, processor / trainer["bytes"] * GIB


def ranks(link, secret, seconds):
    endpoint = f"{link.address}:{29500 + secrets.randbelow(2000)}"
    steps = int(4 * seconds)
    both = [link.start(end, "rank", rank, endpoint, secret, steps) for rank, end in enumerate((HERE, THERE))]
    told = [result(process) for process in both]
    moved = told[0]["bytes"]
    return moved / told[0]["seconds"] / 1e6, sum(one["processor"] for one in told) / moved * GIB


def main():
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--rates", default="1gbit 2500mbit 5gbit 10gbit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    options = parser.parse_args()
    print(f"{'link':10} {'between':8} {'sealed MB/s':>12} {'insecure':>10} {'ratio':>19} {'cpu s/GiB':>10} "
          f"{'insecure':>9}")
    for rate in [*options.rates.split(), None]:
        with Link(rate) as link:
            for name, measure in (("servers", servers), ("ranks", ranks)):
                rows = [[measure(link, secret, options.seconds)
                         for secret in (secrets.token_hex(32), "-")] for _ in range(options.rounds)]
                sealed, insecure = ([statistics.median(row[way][part] for row in rows) for part in (0, 1)]
                                    for way in (0, 1))
                ratios = [row[0][0] / row[1][0] for row in rows]
                ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
                print(f"{rate or 'loopback':10} {name:8} {sealed[0]:12.0f} {insecure[0]:10.0f} {ratio:>19} "
                      f"{sealed[1]:10.2f} {insecure[1]:9.2f}", flush=True)


if __name__ == "__main__":
    main()

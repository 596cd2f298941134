#!/usr/bin/env python3
"""Ranks on two hosts (network namespaces, tests/support/hosts_rig.py):
what crosses the link between them, and a death.

usage: hosts.py PROGRAM [--slow]     PROGRAM: collective_world_rank

Two levels send fewer bytes from host to host than all ranks alike; both give exact sums; a rank that is
killed is named on both hosts. --slow: also prints how long a call takes over a link of 100 Mbit/s, and the
ratio. Exits 77 where there can be no hosts.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))
COUNT, CALLS, RANKS_OF_HOST = 1_000_000, 5, 3
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/"}


def run(host, *command):
    return host.run(command, check=True, environment=ENVIRONMENT).stdout


def sent(host):
    """Bytes that left the host by its link to the others."""
    links = json.loads(run(host, "ip", "-j", "-s", "link"))
    return sum(link["stats64"]["tx"]["bytes"] for link in links if link["ifname"] != "lo")


class Job:
    """The ranks of a world, RANKS_OF_HOST on each host."""

    def __init__(self, hosts, program, secret, port, *arguments):
        self.ranks = []
        for host in hosts:
            for _ in range(RANKS_OF_HOST):
                rank = len(self.ranks)
                environment = dict(
                    ENVIRONMENT, RANK=str(rank), WORLD_SIZE=str(RANKS_OF_HOST * len(hosts)),
                    MASTER_ADDR=hosts[0].address,
                    MASTER_PORT=str(port), FLEETRUN_SECRET_FILE=str(secret), FLEETRUN_MEET_TIMEOUT="30",
                    FLEETRUN_COLLECTIVE_TIMEOUT="60")
                self.ranks.append(host.popen([program, *map(str, arguments)], environment=environment,
                                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))

    def finish(self):
        """What each rank has said, and its status."""
        return [(rank.communicate(timeout=120)[0], rank.returncode) for rank in self.ranks]


def all_reduces(hosts, program, secret, port, shape):
    """(bytes that the first host sent, milliseconds of a call)."""
    before = sent(hosts[0])
    results = Job(hosts, program, secret, port, COUNT, CALLS, shape).finish()
    for said, status in results:
        assert status == 0 and " 0 wrong" in said, said
    times = [float(re.search(r"([\d.]+) ms a call", said)[1]) for said, _ in results]
    return sent(hosts[0]) - before, max(times)


def check_bytes(hosts, program, secret):
    ranks, payload = RANKS_OF_HOST * len(hosts), COUNT * 4 * CALLS
    levels, _ = all_reduces(hosts, program, secret, 6201, "levels")
    alike, _ = all_reduces(hosts, program, secret, 6202, "alike")
    print(f"bytes from one host to the other, of {payload}: two levels {levels}, all alike {alike}")
    # 2 S (G-1)/G and 2 S (P-1)/P; the network adds some percent.
    assert payload < levels < 1.15 * payload, levels
    assert 2 * payload * (ranks - 1) / ranks < alike < 1.15 * 2 * payload * (ranks - 1) / ranks, alike


def check_death(hosts, program, secret):
    for port, shape in (6203, "levels"), (6204, "alike"):
        job = Job(hosts, program, secret, port, COUNT, 0, shape)
        victim = len(job.ranks) - 1
        assert job.ranks[victim].stdout.readline() == "ready\n"
        job.ranks[victim].kill()
        for rank, (said, status) in enumerate(job.finish()):
            if rank != victim:
                assert status == 3 and f"group all: rank {victim} died" in said, (rank, status, said)


def measure_slow(hosts, program, secret):
    for host in hosts:
        links = json.loads(run(host, "ip", "-j", "link"))
        device = next(link["ifname"] for link in links if link["ifname"] != "lo")
        run(host, *f"tc qdisc add dev {device} root tbf rate 100mbit burst 64kb latency 50ms".split())
    _, levels = all_reduces(hosts, program, secret, 6205, "levels")
    _, alike = all_reduces(hosts, program, secret, 6206, "alike")
    print(
        f"all_reduce of {COUNT * 4} bytes, {RANKS_OF_HOST} ranks on each of {len(hosts)} hosts, "
        "100 Mbit/s between them: "
          f"two levels {levels:.1f} ms, all alike {alike:.1f} ms, {alike / levels:.2f} times")


def main(arguments):
    if not arguments or {"-h", "--help"} & set(arguments):
        print(__doc__.strip())
        return 0 if arguments else 2
    from hosts_rig import Rig, why_not

    if lacking := why_not():
        print(f"skipped: {lacking}")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        with Rig(place / "rig", hosts=2, sshd=False) as rig:
            program = rig.shared / "collective_world_rank"
            shutil.copy(arguments[0], program)
            secret = rig.shared / "secret"
            secret.write_text("0123456789abcdef" * 4 + "\n")
            secret.chmod(0o600)
            check_bytes(rig.hosts, program, secret)
            check_death(rig.hosts, program, secret)
            if "--slow" in arguments:
                measure_slow(rig.hosts, program, secret)
    print("2 hosts: exact, as few bytes as said, and deaths named")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

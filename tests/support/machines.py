"""Machines of namespaces on one bridge, without anything that runs on them yet. Root only.

The first one's network namespace holds the bridge, and each other one has a leg on it; all have an /etc/hosts
that knows them. Nothing is made outside of these namespaces, and they end with their processes.
"""

import ctypes
import os
import signal
import subprocess
import time

import pytest

DEADLINE = 60


def wait_for(condition, what, seconds=DEADLINE):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.02)


def die_with_the_test():
    """In a child before exec: it ends with this process, however that ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Place:
    """One machine: the namespaces of a process that only sleeps."""

    def __init__(self, name, address, hosts_file):
        self.name, self.address = name, address
        script = (f"mount --make-rprivate / && mount --bind {hosts_file} /etc/hosts && "
                  f"hostname {name} && ip link set lo up && echo made && exec sleep infinity")
        self.holder = subprocess.Popen(["unshare", "-n", "-u", "-m", "sh", "-c", script],
                                       stdout=subprocess.PIPE,
                                       preexec_fn=die_with_the_test)
        assert self.holder.stdout.readline() == b"made\n", f"no namespaces for {name}"

    def command(self, *words, cwd=None):
        return ["nsenter", "-t", str(self.holder.pid), "-n", "-u", "-m", f"--wd={cwd or os.getcwd()}",
                *map(str, words)]

    def run(self, *words, **more):
        return subprocess.run(self.command(*words), check=True, **more)

    def pids(self):
        """Every living process of this machine, by its network namespace."""
        own = os.readlink(f"/proc/{self.holder.pid}/ns/net") if self.holder.poll() is None else None
        found = set()
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/stat") as file:
                    alive = file.read().rpartition(")")[2].split()[0] not in "ZX"
                if alive and os.readlink(f"/proc/{entry}/ns/net") == own:
                    found.add(int(entry))
            except OSError:
                continue
        return found - {self.holder.pid}

    def signal(self, number):
        """To every process of this machine, by its id, until none appears that has not got it."""
        told = set()
        while True:
            new = self.pids() - told
            if not new:
                return
            for pid in new:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
            told |= new

    def close(self):
        """Ends all of its processes and then the machine."""
        while self.holder.poll() is None and self.pids():
            self.signal(signal.SIGKILL)
            time.sleep(0.01)
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


def need_namespaces():
    """Skips the test where they cannot be made."""
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces")
    if not os.path.exists("/etc/hosts"):
        pytest.skip("a root file system without /etc/hosts, over which machines lay their own")
    made = subprocess.run(["unshare", "-n", "-u", "-m", "true"], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no namespaces here: {made.stderr.strip()}")


def make_machines(hosts_file, names, also_known_as=None):
    """{name: Place} with addresses 10.77.0.1, 10.77.0.2 …; the first one has the bridge."""
    known = also_known_as or {}
    addresses = {name: f"10.77.0.{i + 1}" for i, name in enumerate(names)}
    lines = ["127.0.0.1 localhost"] + [" ".join([address, name, *known.get(name, [])])
                                       for name, address in addresses.items()]
    hosts_file.write_text("\n".join(lines) + "\n")
    places = {}
    try:
        for name in names:
            places[name] = Place(name, addresses[name], hosts_file)
        connect(list(places.values()))
    except BaseException:
        for place in places.values():
            place.close()
        raise
    return places


def connect(places):
    switch = places[0]
    switch.run("ip", "link", "add", "br0", "type", "bridge")
    switch.run("ip", "addr", "add", f"{switch.address}/24", "dev", "br0")
    switch.run("ip", "link", "set", "br0", "up")
    for i, place in enumerate(places[1:]):
        switch.run("ip", "link", "add", f"leg{i}", "type", "veth", "peer", "name", "eth0", "netns",
                   place.holder.pid)
        switch.run("ip", "link", "set", f"leg{i}", "master", "br0", "up")
        place.run("ip", "addr", "add", f"{place.address}/24", "dev", "eth0")
        place.run("ip", "link", "set", "eth0", "up")

"""A Slurm cluster for the tests: munged, a controller and its nodes, all below one directory and gone with it.

The controller and each node live in a network, host-name and mount namespace of their own: the controller's holds a
bridge, on which each node has a leg, and every namespace has an /etc/hosts that knows them all. Nothing is made outside of
these namespaces, and they end with their processes. It takes root, Debian's slurmctld, slurmd, slurm-client and munge.
"""

import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

DEADLINE = 60  # the limits of jobs are looked at every 30 seconds
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "ip", "unshare", "nsenter", "mount")
SEARCH_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def need_slurm():
    """Skips the test where there is no Slurm, or where namespaces cannot be made."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=SEARCH_PATH) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: scripts/setup-debian --tests does")
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces")
    made = subprocess.run(["unshare", "-n", "-u", "-m", "true"], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no namespaces here: {made.stderr.strip()}")


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
        self.holder = subprocess.Popen(["unshare", "-n", "-u", "-m", "sh", "-c", script], stdout=subprocess.PIPE,
                                       preexec_fn=die_with_the_test)
        assert self.holder.stdout.readline() == b"made\n", f"no namespaces for {name}"

    def command(self, *words, cwd=None):
        return ["nsenter", "-t", str(self.holder.pid), "-n", "-u", "-m", f"--wd={cwd or os.getcwd()}", *map(str, words)]

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


class SlurmRig:
    """`with SlurmRig(directory) as slurm: slurm.run("srun", "hostname")`."""

    def __init__(self, nodes=2, cpus=4, kill_wait=5):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
        self.directory.chmod(0o755)  # munged wants a way to its socket that others may search
        self.names = [f"n{i + 1}" for i in range(nodes)]
        self.cpus, self.kill_wait = cpus, kill_wait
        self.daemons = {}
        self.places = {}
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
        self.environment["SLURM_CONF"] = str(self.directory / "slurm.conf")
        self.environment["PATH"] = self.environment.get("PATH", "") + ":" + SEARCH_PATH

    def __enter__(self):
        try:
            self.build_network()
            self.start_munged()
            self.write_configuration()
            self.start("slurmctld", self.places["ctl"], "slurmctld", "-D", "-i", "-f", self.directory / "slurm.conf")
            for name in self.names:
                self.start_node(name)
            self.wait_until_idle()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *_):
        failed = _[0] is not None
        for place in self.places.values():
            place.close()
        for process in self.daemons.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        if failed:
            sys.stderr.write(self.daemon_logs())
        shutil.rmtree(self.directory, ignore_errors=True)

    # The machines

    def build_network(self):
        machines = ["ctl", *self.names]
        hosts = self.directory / "hosts"
        addresses = {name: f"10.77.0.{i + 1}" for i, name in enumerate(machines)}
        lines = ["127.0.0.1 localhost"] + [f"{address} {name}" for name, address in addresses.items()]
        hosts.write_text("\n".join(lines) + "\n")
        for name in machines:
            self.places[name] = Place(name, addresses[name], hosts)
        switch = self.places["ctl"]
        switch.run("ip", "link", "add", "br0", "type", "bridge")
        switch.run("ip", "addr", "add", f"{addresses['ctl']}/24", "dev", "br0")
        switch.run("ip", "link", "set", "br0", "up")
        for name in self.names:
            node = self.places[name]
            switch.run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", node.holder.pid)
            switch.run("ip", "link", "set", f"to-{name}", "master", "br0", "up")
            node.run("ip", "addr", "add", f"{addresses[name]}/24", "dev", "eth0")
            node.run("ip", "link", "set", "eth0", "up")

    # The daemons

    def start(self, title, place, *words):
        log = open(self.directory / f"{title}.out", "wb")
        self.daemons[title] = subprocess.Popen(place.command(*words), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                               env=self.environment, preexec_fn=die_with_the_test)
        log.close()

    def start_munged(self):
        folder = self.directory / "munge"
        folder.mkdir(mode=0o755)
        key = folder / "key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        self.start("munged", self.places["ctl"], "munged", "--foreground", "--force", f"--key-file={key}",
                   f"--socket={folder}/socket", f"--pid-file={folder}/pid", f"--seed-file={folder}/seed", "--num-threads=2")

        def answers():
            with socket.socket(socket.AF_UNIX) as client:
                return client.connect_ex(f"{folder}/socket") == 0
        wait_for(answers, "munged")

    def write_configuration(self):
        base = self.directory
        addresses = "".join(f"NodeName={name} NodeAddr={self.places[name].address} CPUs={self.cpus} RealMemory=512 State=UNKNOWN\n"
                            for name in self.names)
        (base / "slurm.conf").write_text(f"""\
ClusterName=test
SlurmctldHost=ctl({self.places["ctl"].address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={base}/munge/socket
CredType=cred/munge
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/%n.pid
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool-%n
SlurmctldLogFile={base}/slurmctld.log
SlurmdLogFile={base}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=10000,sched_interval=1,bf_interval=1
MailProg=/bin/true
SlurmdParameters=config_overrides
ReturnToService=2
KillWait={self.kill_wait}
SlurmdTimeout=10
InactiveLimit=0
MinJobAge=300
UnkillableStepTimeout=30
SlurmctldDebug=info
SlurmdDebug=info
{addresses}PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
""")
        (base / "state").mkdir()
        for name in self.names:
            (base / f"spool-{name}").mkdir()

    def start_node(self, name):
        self.start(name, self.places[name], "slurmd", "-D", "-N", name, "-f", self.directory / "slurm.conf")

    def stop_node(self, name):
        """As if its power were cut: nothing of it is heard any more, and the daemon, the steps and their processes are gone."""
        place = self.places[name]
        place.run("ip", "link", "set", "eth0", "down")
        for number in (signal.SIGSTOP, signal.SIGKILL):
            place.signal(number)
        wait_for(lambda: not place.pids(), f"the end of all processes on {name}")
        self.daemons[name].wait()

    def revive_node(self, name):
        self.places[name].run("ip", "link", "set", "eth0", "up")
        self.start_node(name)

    def wait_until_idle(self):
        wait_for(lambda: self.states() == ["idle"] * len(self.names), f"idle nodes\n{self.daemon_logs()}")

    def all_pids(self):
        return set().union(*(self.places[name].pids() for name in self.names))

    def daemon_logs(self):
        text = ""
        for path in sorted(self.directory.glob("*.log")) + sorted(self.directory.glob("*.out")):
            text += f"--- {path.name}\n" + "".join(path.read_text(errors="replace").splitlines(True)[-30:])
        return text

    # What a test does

    def popen(self, *words, on="ctl", environment=None, cwd=None, **more):
        """A command on one of the machines; it ends with the test."""
        settings = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        settings.update(more)
        return subprocess.Popen(self.places[on].command(*words, cwd=cwd), env={**self.environment, **(environment or {})},
                                preexec_fn=die_with_the_test, **settings)

    def run(self, *words, on="ctl", timeout=DEADLINE, **more):
        """Returns the finished process."""
        process = self.popen(*words, on=on, **more)
        try:
            out, error = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, error = process.communicate()
            raise AssertionError(f"{words} does not end\n{out}\n{error}\n{self.daemon_logs()}") from None
        return subprocess.CompletedProcess(words, process.returncode, out, error)

    def states(self):
        """Of the nodes, by name: idle, alloc, down …"""
        shown = self.run("sinfo", "-h", "-N", "-o", "%N %T").stdout.split()
        return [state for _, state in sorted(zip(shown[::2], shown[1::2]))]

    def job(self, number):
        """What scontrol says of a job, by name."""
        shown = self.run("scontrol", "show", "job", "-o", number).stdout
        return dict(word.split("=", 1) for word in shown.split() if "=" in word)

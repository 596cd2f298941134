"""A Slurm cluster for the tests: munged, a controller and its nodes,
all below one directory and gone with it.

The controller and each node are machines of tests/support/machines.py. It takes root, Debian's slurmctld,
slurmd, slurm-client and munge.
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import pytest

from machines import DEADLINE, die_with_the_test, make_machines, need_namespaces, wait_for

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "ip", "unshare", "nsenter",
            "mount")
SEARCH_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def need_slurm():
    """Skips the test where there is no Slurm, or where namespaces cannot be made."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=SEARCH_PATH) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: scripts/setup-debian --tests does")
    need_namespaces()


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
            self.places = make_machines(self.directory / "hosts", ["ctl", *self.names])
            self.start_munged()
            self.write_configuration()
            self.start("slurmctld", self.places["ctl"], "slurmctld", "-D", "-i", "-f",
                       self.directory / "slurm.conf")
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

    # The daemons

    def start(self, title, place, *words):
        log = open(self.directory / f"{title}.out", "wb")
        self.daemons[title] = subprocess.Popen(place.command(*words), stdin=subprocess.DEVNULL, stdout=log,
                                               stderr=log,
                                               env=self.environment, preexec_fn=die_with_the_test)
        log.close()

    def start_munged(self):
        folder = self.directory / "munge"
        folder.mkdir(mode=0o755)
        key = folder / "key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        self.start("munged", self.places["ctl"], "munged", "--foreground", "--force", f"--key-file={key}",
                   f"--socket={folder}/socket", f"--pid-file={folder}/pid", f"--seed-file={folder}/seed",
                   "--num-threads=2")

        def answers():
            with socket.socket(socket.AF_UNIX) as client:
                return client.connect_ex(f"{folder}/socket") == 0
        wait_for(answers, "munged")

    def write_configuration(self):
        base = self.directory
        addresses = "".join(
            f"NodeName={name} NodeAddr={self.places[name].address} CPUs={self.cpus} RealMemory=512 "
            "State=UNKNOWN\n"
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
        """As if its power were cut: nothing of it is heard any more,
        and the daemon, the steps and their processes are gone."""
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
        return subprocess.Popen(self.places[on].command(*words, cwd=cwd),
                                env={**self.environment, **(environment or {})},
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

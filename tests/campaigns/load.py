#!/usr/bin/env python3
"""usage: tests/campaigns/load.py [--count N] [--seed N] [--only N] [--seconds N] [--fleetrun PATH] …

Holds a load for --seconds, and looks ten times a second how much memory of their own (RssAnon) fleetrun's
processes have. In turn:

  0  servers    one parameter server; --trainers processes that pull and push over TCP, while strangers hold
                --connections connections to it, and open new ones for those that it closes
  1  processes  a launcher of --processes processes
  2  logs       eight workers that would write --rate MB of log a second, through fleetrun-log with a cap, to
                a disk that takes --disk MB a second: a file system of its own, each write of which waits for
                a device that a control group slows down. Who may not make one has the disk that is there

Says how memory grew, at ten moments. It has to be bounded: between a third of the time and the end a server
grows by no more than a twentieth and 16 MiB; a launcher with its fleetrun-init has 448 MiB and 16 KiB for
each process (each knows the endpoints of all, up to 48,000 bytes); one with fleetrun-log never has 128 MiB,
and of what it keeps nothing is missing.
The long form: --only=0 --seconds=7200 --trainers=64 --connections=4000, --only=1 --processes=10000,
--only=2 --seconds=600 --rate=1000. A job that takes more than --limit GiB in all is ended, and has failed.
"""

import contextlib
import os
import pathlib
import re
import select
import socket
import subprocess
import sys
import time

import campaign

TRAINER = """
import os, sys, time
os.environ["FLEETRUN_PS_TRANSPORT"] = "tcp"
import numpy as np
from fleetrun import ps

tables = [ps.SparseTable("rows", 8, rule="sum")]
if ps.is_server():
    ps.Server(tables).wait()
    sys.exit(0)
rank = os.environ["FLEETRUN_RANK"]
client = ps.Client(tables)
with open(f"ready-{rank}.new", "w") as file:
    file.write(os.environ["PADDLE_PSERVERS_IP_PORT_LIST"])
os.rename(f"ready-{rank}.new", f"ready-{rank}")
while not os.path.exists("begin"):
    time.sleep(0.05)
end, step = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end:
    keys = np.arange(step * 16, step * 16 + 16, dtype=np.uint64) % 10000
    client.pull("rows", keys)
    client.push("rows", keys, np.ones((16, 8), "float32"))
    step += 1
open(f"steps-{rank}", "w").write(str(step))
client.goodbye()
"""
WRITER = """
import os, sys, time

rank, seconds, rate = os.environ["FLEETRUN_RANK"], float(sys.argv[1]), float(sys.argv[2])
line = b"%012d " + b"x" * 1010 + b"\\n"
begin, number = time.monotonic(), 0
while (now := time.monotonic() - begin) < seconds:
    if number * 1024 > now * rate:
        time.sleep(0.001)
        continue
    block = b"".join(line % (number + i) for i in range(256))
    while block:
        block = block[os.write(1, block):]
    number += 256
open(f"lines-{rank}", "w").write(str(number))
"""


def more_options(parser):
    parser.add_argument("--seconds", type=float, default=4, help="for how long each load is held (4)")
    parser.add_argument("--trainers", type=int, default=4, help="of one server (4)")
    parser.add_argument("--connections", type=int, default=64, help="of strangers (64)")
    parser.add_argument("--processes", type=int, default=400, help="of one launcher (400)")
    parser.add_argument("--rate", type=float, default=200, help="MB a second that eight workers write (200)")
    parser.add_argument("--disk", type=float, default=40, help="MB a second that the disk takes (40)")
    parser.add_argument("--limit", type=float, default=4, help="GiB that a job may have (4)")


class SlowDisk:
    """A directory on a device that takes so many bytes a second; `is_slow`: whether it could be made."""

    def __init__(self, place, rate):
        self.place, self.image, self.rate = place, place.with_suffix(".image"), rate
        self.group = pathlib.Path("/sys/fs/cgroup/blkio", f"fleetrun-load-{os.getpid()}")
        self.is_slow = False

    def __enter__(self):
        self.place.mkdir()
        if os.geteuid() != 0 or not self.group.parent.is_dir():
            return self
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            with open(self.image, "wb") as file:
                file.truncate(512 << 20)
            subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", self.image], check=True)
            subprocess.run(["mount", "-o", "loop,sync", self.image, self.place], check=True)
            device = os.stat(self.place).st_dev
            self.group.mkdir()
            limit = f"{os.major(device)}:{os.minor(device)} {int(self.rate)}"
            (self.group / "blkio.throttle.write_bps_device").write_text(limit)
            self.is_slow = True
        return self

    def __exit__(self, *_):
        if os.path.ismount(self.place):
            subprocess.run(["umount", self.place], check=True)
        if self.group.is_dir():
            self.group.rmdir()

    def enter(self):
        """For the process that is about to be a job."""
        if self.is_slow:
            (self.group / "cgroup.procs").write_text(str(os.getpid()))


def own_memory(pid):
    """Bytes; 0: it is gone."""
    with contextlib.suppress(OSError):
        found = re.search(r"RssAnon:\s*(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())
        return 1024 * int(found[1]) if found else 0
    return 0


def name_of(pid, words):
    """Which of fleetrun's processes it is; else "other"."""
    name = os.path.basename(words.split()[0]) if words else ""
    if name.startswith("fleetrun"):
        return name
    with contextlib.suppress(OSError):
        if b"TRAINING_ROLE=PSERVER" in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            return "server"
    return "other"


class Memory:
    """What the processes of a turn have of their own, over time."""

    def __init__(self, turn):
        self.turn, self.samples, self.begin, self.pids = turn, [], time.monotonic(), {}

    def find(self):
        self.pids = {pid: name_of(pid, words) for pid, words in self.turn.living().items()}

    def sample(self):
        """Bytes by name; "all": of the job."""
        have = {"all": 0}
        for pid, name in self.pids.items():
            size = own_memory(pid)
            have[name] = have.get(name, 0) + size
            have["all"] += size
        self.samples.append((time.monotonic() - self.begin, have))
        if have["all"] > self.turn.options.limit * 2**30:
            raise AssertionError(f"the job has {have['all'] >> 20} MiB")
        return have

    def watch(self, job, seconds, meanwhile=lambda: None):
        end = time.monotonic() + seconds
        while time.monotonic() < end and job.poll() is None:
            self.sample()
            meanwhile()
            time.sleep(0.1)

    def table(self):
        names = [name for name in ("fleetrun", "fleetrun-init", "fleetrun-log", "server", "all")
                 if any(name in have for _, have in self.samples)]
        step = max(1, len(self.samples) // 10)
        for at, have in self.samples[::step]:
            sizes = "  ".join(f"{name} {have.get(name, 0) / 2**20:.1f} MiB" for name in names)
            print(f"  {at:7.1f} s  {sizes}")

    def most(self, *names):
        return max(sum(have.get(name, 0) for name in names) for _, have in self.samples)


def wait_for(job, turn, ready, seconds, what):
    end = time.monotonic() + seconds
    while not ready():
        if job.poll() is not None or time.monotonic() > end:
            raise AssertionError(f"not {what}: {turn.said()[-900:]}")
        time.sleep(0.1)


class Strangers:
    """So many connections that say nothing, to one endpoint."""

    def __init__(self, endpoint, count):
        host, _, port = endpoint.rpartition(":")
        self.endpoint, self.count, self.opened = (host, int(port)), count, 0
        self.poll, self.sockets = select.poll(), {}

    def keep(self):
        """Opens new ones for those that were closed."""
        for number, _ in self.poll.poll(0):
            self.poll.unregister(number)
            self.sockets.pop(number).close()
        while len(self.sockets) < self.count:
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(self.endpoint)
            self.poll.register(one, select.POLLIN)
            self.sockets[one.fileno()] = one
            self.opened += 1


def servers(turn, memory, options):
    (turn.directory / "train.py").write_text(TRAINER)
    job = turn.start("--server_num=1", f"--trainer_num={options.trainers}", "--show=none", "train.py",
                     options.seconds)
    wait_for(job, turn, lambda: len(list(turn.directory.glob("ready-*"))) == options.trainers,
             60 + options.trainers, "all trainers are connected")
    strangers = Strangers((turn.directory / "ready-0").read_text(), options.connections)
    memory.find()
    (turn.directory / "begin").touch()
    memory.watch(job, options.seconds, strangers.keep)
    if job.wait(120) != 0:
        return f"status {job.returncode}: {turn.said()[-900:]}"
    steps = sum(int(path.read_text()) for path in turn.directory.glob("steps-*"))
    third = memory.samples[len(memory.samples) // 3][1].get("server", 0)
    last = memory.samples[-2][1].get("server", 0)
    print(f"servers: {options.trainers} trainers made {steps} steps, strangers opened {strangers.opened} "
          f"connections; the server has {third / 2**20:.1f} MiB after a third of the time, "
          f"{last / 2**20:.1f} MiB at the end")
    memory.table()
    return f"the server grew from {third} to {last} bytes" if last > 1.05 * third + 2**24 else None


def processes(turn, memory, options):
    sleeper = turn.directory / "sleeper"
    os.symlink("/bin/sleep", sleeper)
    began = time.monotonic()
    job = turn.start(f"--nproc_per_node={options.processes}", "--show=none", sleeper, 86400)
    wait_for(job, turn, lambda: f"replicas {options.processes}, status running" in turn.said(),
             60 + options.processes / 20, "all processes run")
    took = time.monotonic() - began
    memory.find()
    memory.pids = {pid: name for pid, name in memory.pids.items() if name != "other"}
    memory.watch(job, options.seconds)
    job.terminate()
    status = job.wait(60 + options.processes / 50)
    have = memory.most("fleetrun", "fleetrun-init")
    print(f"processes: {options.processes} run after {took:.1f} s; fleetrun and fleetrun-init have "
          f"{have / 2**20:.1f} MiB at most")
    memory.table()
    if status != 143 or turn.wait_until_gone(30) is None:
        return f"status {status}, {len(turn.living())} processes are left"
    return f"{have} bytes" if have > 448 * 2**20 + 16 * 1024 * options.processes else None


def missing_lines(turn, disk, rank):
    """What is wrong with the log of a worker: all lines that are kept follow each other, up to the last."""
    (pod,) = disk.place.glob("*/0")
    parts = sorted(pod.glob(f"workerlog.{rank}.*"), key=lambda path: -int(path.suffix[1:]))
    text = b"".join(path.read_bytes() for path in [*parts, pod / f"workerlog.{rank}"])
    numbers = [int(line[:12]) for line in text.splitlines() if len(line) == 1023]
    last = int((turn.directory / f"lines-{rank}").read_text())
    if not numbers or numbers != list(range(numbers[0], last)):
        return f"of worker {rank}'s {last} lines {len(numbers)} are kept, and some are missing"
    return None


def logs(turn, memory, options):
    (turn.directory / "write.py").write_text(WRITER)
    with SlowDisk(turn.directory / "disk", options.disk * 1e6) as disk:
        try:
            return log_on(disk, turn, memory, options)
        finally:
            turn.kill_rest()


def log_on(disk, turn, memory, options):
    job = turn.start("--nproc_per_node=8", "--log_through", "--log_cap=8M", "--log_keep=2", "--log_dir=disk",
                     "write.py", options.seconds, options.rate * 1e6 / 8, preexec_fn=disk.enter)
    wait_for(job, turn, lambda: "status running" in turn.said(), 60, "all workers run")
    memory.find()
    memory.watch(job, options.seconds + 60)
    if job.wait(60) != 0:
        return f"status {job.returncode}: {turn.said()[-900:]}"
    written = sum(int(path.read_text()) for path in turn.directory.glob("lines-*"))
    have = memory.most("fleetrun", "fleetrun-init", "fleetrun-log")
    print(f"logs: {written / 1024:.0f} MiB written in {memory.samples[-1][0]:.1f} s to "
          f"{'a slow disk' if disk.is_slow else 'the disk that is there'}; fleetrun, fleetrun-init and "
          f"fleetrun-log have {have / 2**20:.1f} MiB at most")
    memory.table()
    return (f"{have} bytes" if have > 2**27 else None) or next(
        filter(None, (missing_lines(turn, disk, rank) for rank in range(8))), None)


def run(turn):
    memory = Memory(turn)
    try:
        return (servers, processes, logs)[turn.number % 3](turn, memory, turn.options)
    except (AssertionError, subprocess.TimeoutExpired) as wrong:
        memory.table()
        return str(wrong)


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, run, count=3, more_options=more_options))

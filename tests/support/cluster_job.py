"""A job on the hosts of a rig: its processes write down who they are, obey, and their worlds are checked.

    team = Team(rig)
    jobs = team.meet(rig.hosts[:3], "--nnodes=2:3")         # the same command on each host
    world = team.wait_for_world(hosts=3)
    team.order("rank-1", "exit 3")
    team.finish(jobs)                                       # all have ended; nothing is left; {host: status}
"""

import collections
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import time

from fleetrun_job import wait_until

WORKER = pathlib.Path(__file__).with_name("cluster_worker.py")
PORT = 6768  # every host is a machine of its own, so that any port is free
CONFIGURATION = re.compile(r"LAUNCH INFO \S+ \S+ (-+|\w+: )")  # lines that say nothing new
QUICK = 30  # seconds for what takes one or two, where others compute beside



def python_path():
    """Where the built package is, unless it is installed beside the interpreter that runs this."""
    return {"PYTHONPATH": os.environ["FLEETRUN_PYTHONPATH"]} if "FLEETRUN_PYTHONPATH" in os.environ else {}


def has_package():
    return subprocess.run([sys.executable, "-c", "import fleetrun"], env={**os.environ, **python_path()},
                          capture_output=True).returncode == 0


def training_environment(host):
    """Of a fleetrun on `host` whose processes import the package."""
    return host.environment(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", **python_path())


Beat = collections.namedtuple("Beat", "host who run first last epoch")


class Team:
    """What runs on the hosts of `rig`, and what it has said of itself."""

    def __init__(self, rig, secret=True):
        self.rig, self.folder = rig, rig.shared / f"team-{time.monotonic_ns()}"
        for name in ("started", "orders", "obeyed", "steps"):
            (self.folder / name).mkdir(parents=True)
        self.secret = rig.share_secret() if secret else None
        self.jobs = []

    @property
    def script(self):
        """The words after the launcher's flags: a script and its arguments."""
        return [WORKER, self.folder]

    def start(self, host, *flags, master=None, environment=None):
        """fleetrun on one host, told where to meet: on the first host unless said otherwise."""
        master = master or self.rig.hosts[0]
        job = host.start(f"--master={master.address}:{PORT}", "--python", sys.executable, *flags,
                         *self.script,
                         environment=environment)
        self.jobs.append(job)
        return job

    def meet(self, hosts, *flags, **options):
        return [self.start(host, *flags, **options) for host in hosts]

    def from_here(self, head, hosts, *flags, environment=None):
        """fleetrun on one host, which starts the others over ssh;
        `hosts`: of the rig, or the words of --hosts."""
        words = hosts if isinstance(hosts, str) else ",".join(host.name for host in hosts)
        job = head.start(f"--hosts={words}", "--python", sys.executable, *flags, *self.script,
                         environment=environment)
        self.jobs.append(job)
        return job

    # ---- what the processes say

    def records(self):
        found = []
        for path in (self.folder / "started").iterdir():
            if not path.name.startswith("."):
                found.append(json.loads(path.read_text()))
        return sorted(found, key=lambda record: record["at"])

    def worlds(self):
        """{epoch: {who: record}} of all that ever started."""
        found = {}
        for record in self.records():
            found.setdefault(record["epoch"], {})[record["who"]] = record
        return found

    def wait_for_world(self, size, after=-1, seconds=QUICK, servers=0):
        """The first world of an epoch later than `after` in which `size` trainers
        (and `servers`) have started: {who: record}."""
        def complete():
            self.check_jobs()
            for epoch, world in sorted(self.worlds().items()):
                trainers = [who for who in world if who.startswith("rank-")]
                if epoch > after and len(trainers) == size and len(world) - size == servers:
                    record = world[trainers[0]]
                    if int(record["environment"]["PADDLE_TRAINERS_NUM"]) == size:
                        return world
            return None

        try:
            return wait_until(complete, f"a world of {size} trainers after epoch {after}", seconds)
        except AssertionError as wrong:
            raise AssertionError(f"{wrong}\n{self.story()}") from None

    def check_jobs(self):
        """Fails at once when there is nobody left who could form a world."""
        assert (not self.jobs
                or any(job.process.poll() is None for job in self.jobs)), "all launchers have ended"

    def beats(self):
        """Of each process that ever stepped: when first, when last."""
        found = []
        for path in (self.folder / "steps").iterdir():
            data = path.read_bytes()
            if len(data) == 24:
                found.append(Beat(*path.name.split(".")[:3], *struct.unpack("=ddq", data)))
        return found

    def steps(self):
        """{(host, who): (time of its last step, its epoch)}"""
        return {(beat.host, beat.who): (beat.last, beat.epoch)
                for beat in sorted(self.beats(), key=lambda beat: beat.last)}

    def order(self, whom, what):
        path = self.folder / "orders" / whom
        path.with_name(f".{path.name}").write_text(what)
        path.with_name(f".{path.name}").rename(path)

    def forget_orders(self):
        for path in (self.folder / "orders").iterdir():
            path.unlink()

    def workers_on(self, host):
        """{pid: command line} of the job's own processes there, without launchers."""
        return {pid: words for pid, words in host.processes().items()
                if WORKER.name in words and not words.split()[0].endswith(("fleetrun", "fleetrun-init"))}

    # ---- the end

    def finish(self, jobs=None, seconds=QUICK, hosts=None):
        """The exit statuses by host; nothing may be left on the hosts,
        and no world may contradict another."""
        jobs = self.jobs if jobs is None else jobs
        end = time.monotonic() + seconds
        try:
            for job in jobs:
                job.finish(max(0.1, end - time.monotonic()))
            self.check_worlds()
            self.check_nothing_left(hosts if hosts is not None else self.rig.hosts)
        except AssertionError as wrong:
            raise AssertionError(f"{wrong}\n{self.story()}") from None
        return {job.host.name: job.status for job in jobs}

    def check_nothing_left(self, hosts):
        for host in hosts:
            if host.holder is None:
                continue
            wait_until(lambda host=host: not host.processes(),
                       f"the end of {host.processes()} on {host.name}", 3)
            assert not host.listeners(), f"somebody listens on {host.name}: {host.listeners()}"
            left = host.run(["find", "/run/user/0", "/dev/shm", "-mindepth", "2"],
                            directory="/").stdout.split()
            left = [path for path in left if not path.endswith(".sock")]
            assert not left, f"files are left on {host.name}: {left}"

    def check_worlds(self):
        """Equal epochs of a run are equal worlds; ranks are unique and contiguous;
        the number of trainers is what it says."""
        runs = {}
        for record in self.records():
            worlds = runs.setdefault(record["environment"].get("FLEETRUN_RUN"), {})
            worlds.setdefault(record["epoch"], {})[record["who"]] = record
        for worlds in runs.values():
            self.check_run(worlds)
        places = {}
        for one in self.records():  # a process may be started again, but where it was
            key = (one["environment"].get("FLEETRUN_RUN"), one["epoch"], one["who"])
            first = places.setdefault(key, one["host"])
            assert first == one["host"], f"two hosts have {one['who']}: {places}"

    def check_run(self, worlds):
        for epoch, world in worlds.items():
            trainers = {who: record["environment"] for who, record in world.items()
                        if who.startswith("rank-")}
            told = {(one.get("FLEETRUN_WORLD_HASH"), one["PADDLE_TRAINERS_NUM"],
                     one.get("PADDLE_TRAINER_ENDPOINTS"))
                    for one in trainers.values()}
            assert len(told) <= 1, f"epoch {epoch} is {len(told)} worlds: {told}"
            for (_, number, endpoints) in told:
                ranks = sorted(int(who.partition("-")[2]) for who in trainers)
                assert (len(set(ranks)) == len(ranks)
                        and all(rank < int(number) for rank in ranks)), (epoch, ranks)
                if endpoints:
                    assert len(set(endpoints.split(","))) == int(number), endpoints

    def story(self):
        """Everything that was said, for a failed test."""
        parts = []
        for job in self.jobs:
            status = job.process.poll()
            said = [line for line in f"{job.out}{job.err}".splitlines() if not CONFIGURATION.match(line)]
            parts.append("\n".join([f"---- {job.host.name}, {'runs' if status is None else status}", *said]))
        worlds = {epoch: sorted(f"{who}@{record['host']}" for who, record in world.items())
                  for epoch, world in self.worlds().items()}
        return "\n".join([*parts, f"---- worlds {worlds}"])

#!/usr/bin/env python3
"""usage: tests/campaigns/chaos.py [--minutes M | --count N] [--seed N] [--fleetrun PATH] [--pause FIRST:LAST]

Runs one job of four hosts, each with two trainers, and of two parameter servers, and does something bad to it
every 5 to 30 seconds: processes, launchers and whole hosts are killed, frozen and cut off, one way or both,
for a moment or for long; strangers knock at the ports. Meanwhile every trainer steps. After each fault the
job has to be whole again within a minute, and then: no process is left of what was killed, no port or file is
leaked, no epoch is two worlds. Launchers that ended are started again, as an operator would.

At the end all processes end well, and so must every launcher. Said last: which part of the time as many
trainers as a world has at least were stepping, what each kind of fault cost, how the memory and the
descriptors of the launchers grew.

The hosts are network namespaces (tests/support/hosts_rig.py), so it needs root.
By hand half an hour: --minutes 30.
"""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import campaign  # noqa: E402
import cluster_job  # noqa: E402
import fleetrun_job  # noqa: E402
import hosts_rig  # noqa: E402

HOSTS, LEAST, TRAINERS = 4, 2, 2
SERVERS = (1, 2)  # numbers of the hosts with a server
LEASE = 3  # seconds: what was lost before is known by then
SETTLED = 2.0  # seconds in which a process that was seen to start has its own command line
WHOLE = 60  # seconds within which the job has to be whole again
STEPPING = 0.3  # seconds since its last step for which a trainer counts as stepping
# a host is blamed by the job after three failures in ten minutes: so often it is not made to fail
BLAMED, PAROLE = 2, 600
FLAGS = (f"--nnodes={LEAST}:{HOSTS}", f"--trainer_num={TRAINERS}", "--max_restart=1000000",
         "--restart_backoff=0", "--elastic_timeout=30",
         "--grace=3")


class Job:
    """The job: its launchers by host, and how it does."""

    def __init__(self, rig, seed):
        self.rig, self.team, self.random = rig, cluster_job.Team(rig), random.Random(seed)
        self.launchers, self.dead = {}, []
        self.sampled, self.good = 0, 0
        self.whole = 0.0  # when the job was last found whole
        self.memory = {}  # launcher: [(time, kilobytes, descriptors)] in whole worlds
        self.failures = {host.name: [] for host in rig.hosts}

    def start(self, host):
        servers = 1 if host.number in SERVERS else 0
        self.launchers[host.name] = self.team.start(host, *FLAGS, f"--server_num={servers}")

    def start_missing(self):
        """Starts a launcher where there is none and could be one; what ended is kept for its words."""
        for host in self.rig.hosts:
            if host.holder is None:
                continue
            job = self.launchers.get(host.name)
            if job is None or job.process.poll() is not None:
                if job is not None:
                    self.dead.append((host.name, job.process.returncode, (job.out + job.err)[-600:]))
                    self.team.jobs.remove(job)
                self.start(host)

    def sample(self, since=0):
        """Which processes are stepping now: {(host, who)}; `since`: only steps after that count."""
        now = time.time()
        stepping = {who for who, (at, _) in self.team.steps().items() if max(now - STEPPING, since) < at}
        self.sampled += 1
        self.good += sum(who.startswith("rank-") for _, who in stepping) >= LEAST * TRAINERS
        return stepping

    def watch(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.sample()
            time.sleep(0.05)

    def wait_until_whole(self):
        """All hosts are in one world and step, and go on doing so; what is wrong, else None."""
        end, since, whole = time.monotonic() + WHOLE, time.time() + STEPPING, None
        while time.monotonic() < end:
            self.start_missing()
            roles = [who.partition("-")[0] for _, who in self.sample(since)]
            if roles.count("rank") < HOSTS * TRAINERS or "server" not in roles:
                whole = None
            elif whole is None:
                whole = time.monotonic()
            elif time.monotonic() - whole > LEASE:
                self.whole = whole
                return None
            time.sleep(0.05)
        return f"not whole again after {WHOLE} s\n{self.team.story()[-6000:]}"

    def workers_on(self, host, expected):
        """One that is between fork and exec is not known by its command line yet."""
        until = time.monotonic() + SETTLED
        workers = self.team.workers_on(host)
        while len(workers) != expected and time.monotonic() < until:
            workers = self.team.workers_on(host)
        return workers

    def check(self):
        """What is wrong with a job that is whole, else None."""
        try:
            self.team.check_worlds()
        except AssertionError as wrong:
            return str(wrong)
        # A host that joins while the others go on brings trainers alone: the job keeps its servers.
        servers = [name for name, who in self.sample() if who.startswith("server-")]
        for host in self.rig.hosts:
            expected = TRAINERS + servers.count(host.name)
            workers = self.workers_on(host, expected)
            if len(workers) != expected:
                return (f"{len(workers)} processes of the job on {host.name} instead of {expected}: "
                        f"{host.processes()}")
            pid = self.launchers[host.name].process.real
            with contextlib.suppress(OSError):
                descriptors = len(os.listdir(f"/proc/{pid}/fd"))
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                kilobytes = int(status.partition("VmRSS:")[2].split()[0])
                self.memory.setdefault((host.name, pid),
                                       []).append((time.monotonic(), kilobytes, descriptors))
        return None

    def finish(self):
        self.team.order("all", "exit 0")
        try:
            statuses = self.team.finish(list(self.launchers.values()), seconds=20)
        except AssertionError as wrong:
            return str(wrong)[-6000:]
        return (None if set(statuses.values()) == {0}
                else f"the launchers ended with {statuses}\n{self.team.story()[-6000:]}")


# ---- faults: each takes the job, does something, undoes it, and returns what it did


def trainer_killed(job):
    host = pick(job)
    whom = job.random.choice(sorted(job.team.workers_on(host)))
    os.kill(whom, job.random.choice((signal.SIGKILL, signal.SIGSEGV)))
    return f"a process on {host.name} was killed"


def trainer_fails(job):
    host = pick(job)
    newest = {record["who"]: record["epoch"] for record in job.team.records() if record["host"] == host.name}
    epoch = max(newest.values())
    who = job.random.choice(sorted(who for who, its in newest.items() if its == epoch))
    job.team.order(f"{who}.{epoch}", "exit 3")
    fleetrun_job.wait_until((job.team.folder / "obeyed" / f"{who}.{epoch}").exists, f"{who} to obey")
    return f"{who} on {host.name} exited with 3"


def launcher_killed(job):
    host = job.random.choice(job.rig.hosts)
    job.launchers[host.name].signal(signal.SIGKILL)
    job.launchers[host.name].finish(5)
    end = time.monotonic() + 2
    while job.team.workers_on(host):
        assert time.monotonic() < end, f"processes outlive the launcher on {host.name}: {host.processes()}"
        time.sleep(0.01)
    return f"the launcher on {host.name} was killed"


def launcher_terminated(job):
    host = job.random.choice(job.rig.hosts)
    job.launchers[host.name].signal(signal.SIGTERM)
    return f"the launcher on {host.name} got SIGTERM"


def power_lost(job):
    host = job.random.choice(job.rig.hosts)
    host.power_off()
    job.watch(job.random.uniform(0.5, 6))
    host.power_on()
    return f"{host.name} lost its power"


def frozen(job):
    host, seconds = job.random.choice(job.rig.hosts), job.random.choice((0.5, 1.0, 4.0, 6.0))
    host.freeze()
    job.watch(seconds)
    host.thaw()
    return f"{host.name} was frozen for {seconds} s"


def cable_out(job):
    host, seconds = job.random.choice(job.rig.hosts), job.random.choice((0.5, 1.0, 4.0, 8.0))
    host.link(up=False)
    job.watch(seconds)
    host.link(up=True)
    return f"the cable of {host.name} was out for {seconds} s"


def cut_one_way(job):
    deaf, other = job.random.sample(job.rig.hosts, 2)
    seconds = job.random.choice((1.0, 4.0, 6.0))
    deaf.deaf_to(other)
    job.watch(seconds)
    deaf.hears()
    return f"{deaf.name} heard nothing of {other.name} for {seconds} s"


def partition(job):
    hosts = job.random.sample(job.rig.hosts, HOSTS)
    at = job.random.choice((1, 2))
    job.rig.partition(hosts[:at], hosts[at:])
    job.watch(job.random.uniform(3, 8))
    job.rig.heal()
    return (f"{' '.join(host.name for host in hosts[:at])} | {' '.join(host.name for host in hosts[at:])} "
            "for a while")


def flapping(job):
    host = job.random.choice(job.rig.hosts)
    for _ in range(6):
        for up in (False, True):
            host.link(up=up)
            job.watch(0.5)
    return f"the link of {host.name} flapped"


def strangers(job):
    """Random bytes, and connections that stay, at every port of a host."""
    host, other = job.random.sample(job.rig.hosts, 2)
    held = other.popen([sys.executable, "-c", STRANGER, str(job.random.random()),
                        *(f"{address}:{port}" for address, port in host.listeners()
                          if address == host.address)],
                       stdin=subprocess.PIPE)
    job.watch(2)
    held.stdin.close()
    held.wait(20)
    return f"a stranger on {other.name} knocked at all ports of {host.name}"


STRANGER = """
import random, socket, sys
random.seed(sys.argv[1])
held = []
for target in sys.argv[2:]:
    host, _, port = target.rpartition(":")
    for _ in range(40):
        try:
            held.append(socket.create_connection((host, int(port)), 1))
            if random.random() < 0.7:
                held[-1].sendall(random.randbytes(random.choice((1, 100, 70000))))
        except OSError:
            pass
sys.stdin.read()
"""

FAULTS = (trainer_killed, trainer_fails, launcher_killed, launcher_terminated, power_lost, frozen, cable_out,
          cut_one_way,
          partition, flapping, strangers)


def pick(job):
    """A host that may be blamed for one more failure, the least blamed first."""
    now = time.monotonic()
    for name, times in job.failures.items():
        job.failures[name] = [at for at in times if now - at < PAROLE]
    host = min(job.rig.hosts, key=lambda host: (len(job.failures[host.name]), job.random.random()))
    job.failures[host.name].append(now)
    return host


def choose(job):
    spent = min(len(times) for times in job.failures.values()) >= BLAMED
    return job.random.choice([one for one in FAULTS if not (spent
                                                            and one in (trainer_killed, trainer_fails))])


def growth(samples, column):
    """Least squares slope per hour after the first two minutes;
    None where a launcher did not live for long enough to say."""
    samples = [sample for sample in samples if sample[0] - samples[0][0] > 120]
    if len(samples) < 4 or samples[-1][0] - samples[0][0] < 120:
        return None
    times = [sample[0] for sample in samples]
    values = [sample[column] for sample in samples]
    middle, mean = sum(times) / len(times), sum(values) / len(values)
    slope = sum((t - middle) * (v - mean) for t, v in zip(times,
                                                          values)) / sum((t - middle) ** 2 for t in times)
    return slope * 3600


def run(options, rig):
    job, costs, failures, done = Job(rig, options.seed), {}, 0, 0
    job.start_missing()
    if wrong := job.wait_until_whole():
        print(f"the job did not start: {wrong}", flush=True)
        return 1, 1
    begin = time.monotonic()
    job.sampled = job.good = 0
    first, last = (float(part) for part in options.pause.split(":"))
    while time.monotonic() - begin < options.minutes * 60 if options.minutes else done < options.count:
        job.watch(job.random.uniform(first, last))
        fault, struck = choose(job), time.monotonic()
        before = (job.sampled, job.good)
        try:
            said = fault(job)
            wrong = job.wait_until_whole() or job.check()
        except AssertionError as failed:
            said, wrong = fault.__name__, str(failed)
        done += 1
        costs.setdefault(fault.__name__, []).append((job.sampled - before[0] - job.good + before[1]) * 0.05)
        print(f"{struck - begin:7.1f} s  {said}: whole again after {job.whole - struck:.1f} s"
              f" (epoch {max(job.team.worlds(), default=0)})", flush=True)
        if wrong:
            failures += 1
            print(f"fault {done} (--seed {options.seed}): {wrong}", flush=True)
            break
    took = time.monotonic() - begin
    if not failures:
        if wrong := job.finish():
            failures += 1
            print(f"the end (--seed {options.seed}): {wrong}", flush=True)
    for name, lost in sorted(costs.items()):
        print(f"  {name:20} {len(lost):3} times, {sum(lost) / len(lost):5.2f} s of training lost each")
    for what, column, most in (("memory", 1, 8192), ("descriptors", 2, 60)):
        slopes = [slope for samples in job.memory.values() if (slope := growth(samples, column)) is not None]
        if slopes:
            print(
                f"  {what} of {len(slopes)} launchers: {sum(slopes) / len(slopes):+.1f} per hour on average, "
                f"at most {max(slopes):+.1f}"
                  + (" (kilobytes)" if column == 1 else ""))
            if sum(slopes) / len(slopes) > most:
                failures += 1
                print(f"the launchers' {what} grow")
    print(f"effective training time: {100 * job.good / max(1, job.sampled):.1f} % of {took / 60:.1f} minutes,"
          f" {max(job.team.worlds(), default=0)} epochs, {len(job.dead)} launchers started again")
    return done, failures


def main():
    parser = campaign.make_parser(__doc__)
    parser.add_argument("--minutes", type=float, help="how long")
    parser.add_argument("--count", type=int, default=20,
                        help="how many faults, where --minutes is not given (20)")
    parser.add_argument("--pause", default="5:30", help="seconds between faults (5:30)")
    options = campaign.options_of(parser, hosts_rig.why_not)
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, hosts_rig.Rig(folder, hosts=HOSTS,
                                                                               sshd=False) as rig:
        done, failures = run(options, rig)
    print(f"{done} runs, {failures} failures", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

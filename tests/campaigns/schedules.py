#!/usr/bin/env python3
"""usage: tests/campaigns/schedules.py [--count N | --minutes M] [--seed N] [--fleetrun PATH] [--keep FOLDER]

Runs short jobs on two to four hosts, one after the other, each with another random schedule of what goes
wrong: launchers are stopped (SIGSTOP, SIGTSTP), killed and asked to end, trainers are killed, hosts lose
their power, links and single directions are cut. Each schedule has a seed of its own, counted from --seed on,
so a campaign can be run in pieces.

Each job is judged by the beats of its own trainers, a hundred in a second: no process of a world steps once
another world has begun. When all is mended and launchers that ended are started again, all hosts train, and
end well when they are asked to. Launchers that nobody touched end with 0, or say why not. Nothing is left
on any host.

Said last: how long it took until the next world stepped, by the kind of fault: from the fault on, or where it
left fewer launchers than the job has to have, from when there were as many again, since the schedule draws
when that is. And at once, which schedules took longer than 1.5 s after a launcher or trainer was killed.
The hosts are network namespaces (tests/support/hosts_rig.py), so it needs root.
"""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import campaign  # noqa: E402
import cluster_job  # noqa: E402
import hosts_rig  # noqa: E402

HOSTS = 4
BEGUN, WHOLE, ENDED = 60, 60, 30  # seconds on a machine that does other things beside
STEPPING = 1.0  # seconds since its last step for which a trainer counts as stepping
SLOW = 1.5  # seconds until the next world, after a kill, for which a schedule is shown
ALLOWED = (75, 125)  # apart from the others for too long, or come too late


class Strike:
    """A fault that was made, and since when the job can have its next world; None: not yet."""

    def __init__(self, kind, at, possible):
        self.kind, self.at, self.possible = kind, at, possible


class Schedule:
    """One job, and what happens to it."""

    def __init__(self, rig, seed):
        self.rig, self.random, self.seed = rig, random.Random(seed), seed
        self.hosts = rig.hosts[:self.random.randint(2, HOSTS)]
        count = len(self.hosts)
        self.least = self.random.randint(1, count) if self.random.random() < 0.8 else count
        self.restarts = self.random.random() < 0.7
        self.flags = [f"--nnodes={self.least}:{count}" if self.least < count else f"--nnodes={count}",
                      "--elastic_timeout=15", "--grace=2", "--lost_after=3"]
        if self.restarts:
            self.flags += ["--max_restart=100", "--restart_backoff=0"]
        self.team = cluster_job.Team(rig)
        self.jobs = {}  # of each host, the newest launcher last
        self.mended = []  # (when, what undoes a fault)
        self.said, self.struck = [], []  # for people
        self.told = {}  # launcher: the signal that it was sent
        self.asked = False  # any of them, to end

    def start(self, host):
        self.jobs.setdefault(host, []).append(self.team.start(host, *self.flags))

    def start_again(self, host):
        """Where no launcher lives on a host that has power."""
        if host.holder and self.jobs[host][-1].process.poll() is not None:
            self.start(host)
            self.said.append(f"{time.time() - self.begun:5.2f} s: {host.name}: a launcher is started")
            if self.struck and self.struck[-1].possible is None and self.is_enough():
                self.struck[-1].possible = time.time()

    def launcher(self):
        living = [job for jobs in self.jobs.values() for job in jobs[-1:] if job.process.poll() is None]
        return self.random.choice(living) if living else None

    def host(self):
        return self.random.choice(self.hosts)

    def happen(self):
        fault = self.random.choice(FAULTS)
        at = time.time()
        words = fault(self, self.random.choice((0.5, 1.5, 3.5, 5.0)))
        if words:
            self.struck.append(Strike(fault.__name__, at, at if self.is_enough() else None))
            self.said.append(f"{at - self.begun:5.2f} s: {words}")

    def later(self, seconds, mend):
        self.mended.append((time.monotonic() + seconds, mend))

    def mend(self, all_of_it=False):
        due = [each for each in self.mended if all_of_it or each[0] <= time.monotonic()]
        for each in due:
            self.mended.remove(each)
            each[1]()

    def run(self):
        """What is wrong; None: nothing."""
        for host in self.hosts:
            self.start(host)
        try:
            self.team.wait_for_world(len(self.hosts), seconds=BEGUN)
        except AssertionError as wrong:
            return f"no first world: {wrong}"
        self.begun = time.time()
        for _ in range(self.random.randint(1, 4)):
            self.wait(self.random.uniform(0.1, 2.5))
            self.happen()
        while self.mended:
            self.wait(0.05)
        return self.settle() or self.overlap() or self.finish()

    def wait(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.mend()
            time.sleep(0.02)

    def is_enough(self):
        """Whether as many launchers live as the job has to have."""
        killed = {job for job, number in self.told.items() if number in (signal.SIGKILL, signal.SIGTERM)}
        return len([job for job in self.living() if job not in killed]) >= self.least

    def living(self):
        return [job for jobs in self.jobs.values() for job in jobs if job.process.poll() is None]

    def stepping(self, since):
        """The hosts on which the newest world steps, since then; nobody where two do."""
        beats, now = self.team.beats(), time.time()
        stepping = [beat for beat in beats if max(now - STEPPING, since) < beat.last]
        worlds = {(beat.run, beat.epoch) for beat in stepping}
        return {beat.host for beat in stepping} if len(worlds) == 1 else set()

    def settle(self):
        """Waits until all hosts train; launchers that end are started again, as an operator would."""
        until, since = time.monotonic() + WHOLE, time.time() + STEPPING
        while time.monotonic() < until:
            if len(self.stepping(since)) == len(self.hosts):
                return None
            for host in self.hosts:
                self.start_again(host)
            time.sleep(0.2)
        return f"{WHOLE} s after all was mended not all hosts train"

    def overlap(self):
        """No process stepped once one of a later epoch did.
        (Two runs that began apart may have to meet first.)"""
        beats, began = self.team.beats(), {}
        for beat in beats:
            began[beat.run, beat.epoch] = min(beat.first, began.get((beat.run, beat.epoch), beat.first))
        for beat in beats:
            for (its_run, epoch), first in began.items():
                if its_run == beat.run and epoch > beat.epoch and beat.last > first:
                    return (f"{beat.who} of epoch {beat.epoch} on {beat.host} stepped for "
                            f"{1000 * (beat.last - first):.0f} ms beside epoch {epoch}")
        return None

    def finish(self):
        self.team.order("all", "exit 0")
        for job in self.living():
            try:
                job.finish(ENDED)
            except AssertionError as wrong:
                return str(wrong)
        try:
            self.team.check_worlds()
            self.team.check_nothing_left(self.hosts)
        except AssertionError as wrong:
            return str(wrong)
        return self.overlap() or self.statuses()

    def statuses(self):
        """A launcher that was asked to end has the status of that; another one 0, or says why it has not."""
        for host, jobs in self.jobs.items():
            for job in jobs:
                status = job.process.poll()
                if status == 0 or self.told.get(job) in (signal.SIGKILL, -status):
                    continue
                wanted = ALLOWED + ((128 + signal.SIGTERM,) if self.asked else ()) + (
                    () if self.restarts else (128 + signal.SIGKILL,))
                if status not in wanted or not (job.err + job.out).strip():
                    return f"the launcher on {host.name} ended with {status}"
        return None

    def recoveries(self):
        """(fault, seconds) to the first step of the next world, for each fault that was alone."""
        firsts = {}
        for beat in self.team.beats():
            firsts[beat.run, beat.epoch] = min(beat.first, firsts.get((beat.run, beat.epoch), beat.first))
        firsts = sorted(firsts.values())
        for strike, following in zip(self.struck, [each.at for each in self.struck[1:]] + [float("inf")]):
            first = next((first for first in firsts if first > strike.at), float("inf"))
            if first >= following or first == float("inf"):
                continue
            waited = strike.possible is not None and strike.at < strike.possible < first
            yield (strike.kind + ("_below_least" if waited else ""),
                   first - (strike.possible if waited else strike.at))


# ---- faults: each begins, says how it is to be mended, and returns what it did; None: nothing


def stop_launcher(job, seconds, number=signal.SIGSTOP):
    launcher = job.launcher()
    if not launcher:
        return None

    def go_on():  # nsenter stops with what it runs
        launcher.signal(signal.SIGCONT)
        if launcher.process.poll() is None:
            os.kill(launcher.process.pid, signal.SIGCONT)
    job.later(seconds, go_on)
    launcher.signal(number)
    return f"{launcher.host.name}: {signal.Signals(number).name} to the launcher for {seconds} s"


def suspend_launcher(job, seconds):
    return stop_launcher(job, seconds, signal.SIGTSTP)


def end_launcher(job, seconds, number=signal.SIGTERM):
    launcher = job.launcher()
    if not launcher:
        return None
    job.told[launcher] = number
    job.asked = job.asked or number == signal.SIGTERM
    launcher.signal(number)
    if job.random.random() < 0.6:
        job.later(seconds, lambda: job.start_again(launcher.host))
    return f"{launcher.host.name}: {signal.Signals(number).name} to the launcher"


def kill_launcher(job, seconds):
    return end_launcher(job, seconds, signal.SIGKILL)


def kill_trainer(job, _):
    host = job.host()
    workers = sorted(job.team.workers_on(host)) if host.holder else []
    if not workers:
        return None
    try:
        os.kill(job.random.choice(workers), signal.SIGKILL)
    except ProcessLookupError:
        return None
    return f"{host.name}: a trainer is killed"


def lose_power(job, seconds):
    host = job.host()
    if host.holder is None:
        return None
    host.power_off()
    for launcher in job.jobs[host]:
        job.told[launcher] = signal.SIGKILL

    def again():
        host.power_on()
        job.start_again(host)
    job.later(seconds, again)
    return f"{host.name}: without power for {seconds} s"


def cut_cable(job, seconds):
    host = job.host()
    if host.holder is None:
        return None
    job.later(seconds, lambda: host.holder and host.link(up=True))
    host.link(up=False)
    return f"{host.name}: without its cable for {seconds} s"


def cut_one_way(job, seconds):
    deaf, other = job.random.sample(job.hosts, 2)
    if deaf.holder is None:
        return None
    job.later(seconds, lambda: deaf.holder and deaf.hears())
    deaf.deaf_to(other)
    return f"{deaf.name} hears nothing of {other.name} for {seconds} s"


def part(job, seconds):
    hosts = job.random.sample(job.hosts, len(job.hosts))
    if any(host.holder is None for host in hosts):
        return None
    at = job.random.randint(1, len(hosts) - 1)

    def heal():
        for host in hosts:
            if host.holder:
                host.hears()
    job.later(seconds, heal)
    job.rig.partition(hosts[:at], hosts[at:])
    return f"{[host.name for host in hosts[:at]]} | {[host.name for host in hosts[at:]]} for {seconds} s"


FAULTS = (stop_launcher, suspend_launcher, end_launcher, kill_launcher, kill_trainer, lose_power, cut_cable,
          cut_one_way, part)


def run(options, rig):
    done, failures, recoveries = 0, 0, {}
    begin = time.monotonic()
    while time.monotonic() - begin < options.minutes * 60 if options.minutes else done < options.count:
        rig.reset()
        schedule = Schedule(rig, options.seed + done)
        try:
            wrong = schedule.run()
        except AssertionError as failed:
            wrong = str(failed)
        done += 1
        for kind, seconds in schedule.recoveries():
            recoveries.setdefault(kind, []).append(seconds)
            if kind.startswith("kill_") and seconds > SLOW:
                print(f"slow: --seed {schedule.seed}: the next world {seconds:.2f} s after {kind}\n"
                      f"  {' '.join(schedule.flags)}\n  " + "\n  ".join(schedule.said), flush=True)
        if wrong:
            failures += 1
            print(f"--seed {schedule.seed}: {wrong}\n  {' '.join(schedule.flags)}\n  "
                  + "\n  ".join(schedule.said), flush=True)
            if options.keep:
                keep = pathlib.Path(options.keep) / f"{schedule.seed}"
                shutil.copytree(schedule.team.folder, keep, dirs_exist_ok=True)
                (keep / "story").write_text("\n".join([wrong, *schedule.said, schedule.team.story()]))
    took = time.monotonic() - begin
    print(f"seeds {options.seed} to {options.seed + done - 1} in {took:.0f} s", flush=True)
    for kind, times in sorted(recoveries.items()):
        print(f"  {kind:27} {len(times):4} times, the next world after {statistics.median(times):.2f} s "
              f"(at most {max(times):.2f})")
    return done, failures


def main():
    parser = campaign.make_parser(__doc__)
    parser.add_argument("--count", type=int, default=20, help="how many schedules (20)")
    parser.add_argument("--minutes", type=float, help="for how long, in place of --count")
    parser.add_argument("--keep", help="where what failed jobs said is kept")
    options = campaign.options_of(parser, hosts_rig.why_not)
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)  # SIGTSTP stops nobody in a group without a parent in its session
    with (tempfile.TemporaryDirectory(prefix="schedules-") as folder,
          hosts_rig.Rig(folder, hosts=HOSTS, sshd=False) as rig):
        done, failures = run(options, rig)
    print(f"{done} runs, {failures} failures", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

"""What `scripts/bench launch` measures, one class a kind of row. Times are milliseconds."""

import os
import select
import signal
import subprocess
import time

import launchers
from launchers import Hung, Job

LOOPS = ("loop in Python", "loop in C")
GRACE = 1  # seconds, of the stop that has to end with SIGKILL
IDLE_SECONDS = 10


def containment_of(fleetrun):
    """The level that fleetrun says that it reached, or what it said."""
    with launchers.scratch_directory() as directory:
        done = subprocess.run([*fleetrun.argv(1), "/bin/true"], cwd=directory, env=fleetrun.environment(),
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              text=True)
    words = [line for line in done.stderr.splitlines() if "Containment: " in line]
    return words[0].split("Containment: ")[1] if words else "not said"


class Row:
    """`measures`: (key, title, target). `counts`: runs of each contestant;
    --quick takes the second number."""

    floors = ()
    unit = "ms"

    def __init__(self, name, measures, counts):
        self.name, self.measures, self.counts = name, measures, counts

    def prepare(self, programs, directory):
        self.programs, self.directory = programs, directory

    def missing(self, fleetrun):
        """Why this row cannot be measured with this fleetrun, or None."""

    def runs(self, name, quick):
        return self.counts.get(name, (0, 0))[1 if quick else 0]

    def job(self, launcher, count, **options):
        return Job(launcher, self.programs["worker"], count, **options)


class Launch(Row):
    """`count` times /bin/true, from the exec of the launcher to its end."""

    floors = LOOPS

    def __init__(self, name, count, target, counts):
        title = f"{count:,} × `/bin/true`, launcher's exec to its end"
        super().__init__(name, [("wall", title, target)], counts)
        self.count = count

    def measure(self, contestant, _):
        if contestant == LOOPS[0]:
            return {"wall": 1000 * self.python_loop()}
        if contestant == LOOPS[1]:
            done = subprocess.run([self.programs["spawn_loop"], str(self.count)], check=True,
                                  capture_output=True)
            return {"wall": 1000 * float(done.stdout)}
        argv, environment = [*contestant.argv(self.count), "/bin/true"], contestant.environment()
        with launchers.scratch_directory() as directory:
            begin = time.perf_counter()
            process = subprocess.Popen(argv, cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            # Waiting with a timeout would look at growing intervals,
            # which is all that one would measure then.
            pidfd = os.pidfd_open(process.pid)
            ended, _, _ = select.select([pidfd], [], [],
                                        15 if contestant.name == "mpirun" else launchers.LIMIT)
            seconds = time.perf_counter() - begin
            os.close(pidfd)
            if not ended:
                process.kill()
            status = process.wait()
            if not ended:
                raise Hung("its processes had ended")
        if status:
            raise SystemExit(f"bench: error: {' '.join(argv)} ended with {status}")
        return {"wall": 1000 * seconds}

    def python_loop(self):
        begin = time.perf_counter()
        pids = [os.posix_spawn("/bin/true", ["/bin/true"], os.environ) for _ in range(self.count)]
        for pid in pids:
            os.waitpid(pid, 0)
        return time.perf_counter() - begin


class Death(Row):
    """One of four dies at a random time: until the others are gone, and until the launcher is, after them."""

    def measure(self, launcher, generator):
        with self.job(launcher, 4) as job:
            workers = job.await_workers(4)
            time.sleep(generator.uniform(0.02, 0.3) + (1.0 if launcher.name != "fleetrun" else 0))
            victim = generator.choice(workers)
            died = job.kill_one(victim)
            gone = job.await_ends([w.pidfd for w in workers if w is not victim])
            ended = job.await_ends([job.pidfd])
        return {"others": (gone - died) / 1e6, "launcher": max(0, ended - gone) / 1e6}


class Restart(Row):
    """One of four dies: until the first and until all of the new attempt have started."""

    def missing(self, fleetrun):
        try:
            with self.job(fleetrun, 1, restarts=3) as job:
                workers = job.await_workers(1, 5)
                job.kill_one(workers[0])
                job.await_workers(1, 3)
        except Hung:
            return "this fleetrun restarts nothing"
        return None

    def measure(self, launcher, generator):
        with self.job(launcher, 4, restarts=3) as job:
            workers = job.await_workers(4)
            time.sleep(generator.uniform(0.02, 0.3) + (0.5 if launcher.name != "fleetrun" else 0))
            died = job.kill_one(generator.choice(workers))
            started = [worker.started_ns for worker in job.await_workers(4)]
        return {"first": (min(started) - died) / 1e6, "all": (max(started) - died) / 1e6}


class Stop(Row):
    """SIGTERM to the launcher: until all processes and the launcher are gone."""

    def __init__(self, name, title, target, count, counts, stubborn=False):
        super().__init__(name, [("stop", title, target)], counts)
        self.count, self.stubborn = count, stubborn

    def measure(self, launcher, _):
        grace = GRACE if self.stubborn else None
        with self.job(launcher, self.count, grace=grace, stubborn=self.stubborn) as job:
            workers = job.await_workers(self.count)
            time.sleep(0.1)
            begin = time.monotonic_ns()
            job.process.send_signal(signal.SIGTERM)
            end = job.await_ends([job.pidfd, *(w.pidfd for w in workers)])
        return {"stop": (end - begin) / 1e6}


class Idle(Row):
    """CPU and memory of the launcher and its own helpers while 64 processes sleep."""

    def __init__(self, name, measure_row, unit, counts, field):
        super().__init__(name, [measure_row], counts)
        self.unit, self.field = unit, field

    def measure(self, launcher, _):
        with self.job(launcher, 64) as job:
            workers = job.await_workers(64)
            time.sleep(2 if launcher.name != "fleetrun" else 0.5)
            own = launchers.own_processes(job.process.pid, {worker.pid for worker in workers})
            if self.field:
                return {"value": launchers.memory_kib(own, self.field) / 1024}
            begin_ns, begin = launchers.cpu_ns(own), time.monotonic_ns()
            time.sleep(IDLE_SECONDS)
            used = launchers.cpu_ns(own) - begin_ns
            return {"value": 100 * used / (time.monotonic_ns() - begin)}


def counts(fleetrun, paddle, torchrun, mpirun, loops=(0, 0)):
    return {"fleetrun": fleetrun, "Paddle 3.3.1": paddle, "torchrun": torchrun, "mpirun": mpirun,
            LOOPS[0]: loops, LOOPS[1]: loops}


NONE = (0, 0)
ROWS = [
    Launch("launch8", 8, "3× the loop", counts((40, 10), (7, 1), (7, 1), (40, 10), (40, 10))),
    Launch("launch1000", 1000, "1.5× the loop", counts((9, 3), NONE, NONE, NONE, (9, 3))),
    Death("death", [("others", "death of one of 4 → the others gone", "3 ms, p99 10 ms"),
                    ("launcher", "… → the launcher gone, after that", "3 ms")],
          counts((150, 20), (5, 1), (7, 1), (7, 1))),
    Restart("restart", [("first", "death of one of 4 → first process of the new attempt", "10 ms"),
                        ("all", "… → all four of it", "10 ms")],
            counts((30, 5), NONE, (7, 1), NONE)),
    Stop("stop256", "SIGTERM → 256 processes and the launcher gone", "300 ms", 256,
         counts((7, 2), (1, 0), (1, 0), (3, 1))),
    Stop("stubborn64",
         f"the same, 64 that ignore SIGTERM, `--grace {GRACE}` (torchrun's is 30 s, mpirun's 1 s)",
         f"{1000 * GRACE + 500:,} ms", 64, counts((3, 1), (1, 0), (1, 0), (3, 1)), stubborn=True),
    Idle("idle-cpu", ("value", "64 idle: CPU of the launcher, % of a core", "0.1 %"), "%",
         counts((1, 1), (1, 0), (1, 0), (1, 1)), None),
    Idle("idle-memory", ("value", "… its peak memory", "10 MB"), "MB", counts((3, 1), (1, 0), (1, 0), (3, 1)),
         "VmHWM"),
]

"""The launchers that are compared, and one job of any of them: who has started, who is gone, and when."""

import contextlib
import os
import pathlib
import random
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 120  # seconds after which a job counts as hung


class Hung(Exception):
    """A job that did not do in time what was waited for."""


class Launcher:
    """How one launcher is called. `argv(n, restarts)` comes before the command."""

    def __init__(self, name, argv, path=None):
        self.name, self.argv, self.path = name, argv, path

    def environment(self):
        kept = {k: v for k, v in os.environ.items()
                if not k.startswith(("PADDLE_", "FLEETRUN_", "TORCHELASTIC_", "OMPI_"))}
        kept.update(OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore")
        if self.path:
            kept["PATH"] = self.path + os.pathsep + kept["PATH"]
        return kept


def fleetrun(program, extra=()):
    def argv(n, restarts=0, grace=None):
        more = ["--max_restart", str(restarts), "--restart_backoff", "0"] if restarts else []
        more += ["--grace", str(grace)] if grace is not None else []
        return [program, f"--nproc_per_node={n}", *extra, *more]

    return Launcher("fleetrun", argv)


def paddle(folder):
    def argv(n, restarts=0, grace=None):
        return [f"{folder}/bin/python", "-m", "paddle.distributed.launch", "--nproc_per_node", str(n)]

    return Launcher("Paddle 3.3.1", argv, f"{folder}/bin")


def torchrun(folder):
    def argv(n, restarts=0, grace=None):
        return [f"{folder}/bin/torchrun", "--standalone", f"--max-restarts={restarts}",
                f"--nproc-per-node={n}", "--no-python"]

    return Launcher("torchrun", argv, f"{folder}/bin")


def mpirun(program):
    def argv(n, restarts=0, grace=None):
        return [program, "--allow-run-as-root", "--oversubscribe", "-n", str(n)]

    return Launcher("mpirun", argv)


def build_programs(folder):
    """Compiles worker.c and spawn_loop.c into `folder`."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("c++")
    if compiler is None:
        raise SystemExit("bench: error: there is no C compiler (cc)")
    built = {}
    for name in ("worker", "spawn_loop"):
        built[name] = str(pathlib.Path(folder, name))
        language = ["-x", "c"] if compiler.endswith("c++") else []
        subprocess.run([compiler, "-O2", "-o", built[name], *language, str(HERE / f"{name}.c")], check=True)
    return built


class Worker:
    def __init__(self, pid, started_ns, connection):
        self.pid, self.started_ns, self.connection = pid, started_ns, connection
        self.pidfd = os.pidfd_open(pid)


class Job:
    """A launcher with `count` workers, in a directory of its own. Use it in a `with`."""

    def __init__(self, launcher, worker, count, restarts=0, grace=None, stubborn=False):
        self.directory = tempfile.mkdtemp(prefix="bench-")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.directory + "/s")
        self.listener.listen(1024)
        self.workers = []
        command = [worker, self.directory + "/s", *(["stubborn"] if stubborn else [])]
        self.begin_ns = time.monotonic_ns()
        self.process = subprocess.Popen(
            [*launcher.argv(count, restarts=restarts, grace=grace), *command],
            cwd=self.directory,
            env=launcher.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.pidfd = os.pidfd_open(self.process.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for worker in self.workers:  # whatever the launcher left behind
            try:
                signal.pidfd_send_signal(worker.pidfd, signal.SIGKILL)
            except ProcessLookupError:
                pass
            os.close(worker.pidfd)
            worker.connection.close()
        os.close(self.pidfd)
        self.listener.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def await_workers(self, count, seconds=LIMIT):
        """The next `count` workers that call; their pids as this process sees them."""
        self.listener.settimeout(seconds)
        called = []
        while len(called) < count:
            try:
                connection, _ = self.listener.accept()
            except TimeoutError as error:
                raise Hung(f"{len(called)} of {count} processes started") from error
            connection.settimeout(seconds)
            started_ns = struct.unpack("=q", connection.recv(8))[0]
            pid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            called.append(Worker(pid, started_ns, connection))
        self.workers += called
        return called

    def kill_one(self, worker):
        """Lets one worker end with status 1; the time at which it did, in ns."""
        os.kill(worker.pid, signal.SIGUSR1)
        return struct.unpack("=q", worker.connection.recv(8))[0]

    def await_ends(self, pidfds, seconds=LIMIT):
        """When the last of these processes has ended, in ns."""
        waiting = select.epoll()
        for pidfd in pidfds:
            waiting.register(pidfd, select.EPOLLIN)
        left = len(pidfds)
        last = 0
        deadline = time.monotonic() + seconds
        while left:
            ready = waiting.poll(max(0, deadline - time.monotonic()))
            last = time.monotonic_ns()
            if not ready:
                raise Hung(f"{left} of {len(pidfds)} processes are left")
            for pidfd, _ in ready:
                waiting.unregister(pidfd)
            left -= len(ready)
        waiting.close()
        return last


@contextlib.contextmanager
def scratch_directory():
    """A directory for one run; what lies in it does not count."""
    directory = tempfile.mkdtemp(prefix="bench-")
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def own_processes(launcher_pid, workers):
    """The launcher and what it has started for itself:
    everything below it that is neither worker nor worker's parent shell."""
    below = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                below.setdefault(int(file.read().rpartition(")")[2].split()[1]), []).append(int(entry))
        except OSError:
            pass
    found, queue = [], [launcher_pid]
    while queue:
        pid = queue.pop()
        if pid not in workers:
            found.append(pid)
            queue += below.get(pid, [])
    return found


def cpu_ns(pids):
    """CPU time of all threads of these processes, in ns."""
    total = 0
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                total += int(file.read().split()[0])
    return total


def memory_kib(pids, field):
    """VmRSS, VmHWM (its peak) … of these processes together."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/status") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith(field + ":"))
    return total


def make_generator(seed):
    return random.Random(seed)

"""Runs fleetrun for the end-to-end tests: where it is, a job, and the directory that a job runs in."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEADLINE = 30  # seconds after which a test that waits has failed


def find_fleetrun():
    """$FLEETRUN_BIN, else the one that is installed in the active environment, else the one of ./build."""
    path = (os.environ.get("FLEETRUN_BIN") or shutil.which("fleetrun")
            or str(ROOT / "build" / "fleetrun"))
    if not os.path.exists(path):
        raise FileNotFoundError(f"fleetrun is not at {path}; build it or set FLEETRUN_BIN")
    return path


def reachable_fleetrun(work):
    """A copy of fleetrun that any user may run, though the checkout may lie in root's home;
    opens the way to `work` too."""
    folder = work.directory.with_name(work.directory.name + "-bin")
    folder.mkdir()
    program = pathlib.Path(find_fleetrun()).resolve()
    places = (program.with_name("fleetrun-init"), program.parents[1] / "launcher" / "fleetrun-init")
    for source in (program, next(place for place in places if place.exists())):
        shutil.copy(source, folder)
    for directory in (folder, *list(work.directory.parents)[:3]):
        if str(directory).startswith("/tmp/"):
            directory.chmod(0o755)
    return folder / "fleetrun"


@contextlib.contextmanager
def small_file_system(directory, options):
    """A tmpfs over `directory`; skips where none may be mounted: not root, or a container's root."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(directory)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        import pytest  # who imports this module may do without

        pytest.skip(f"no file system may be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


def clean_environment(**more):
    """This process's environment without what would change a job."""
    prefixes = ("PADDLE_", "FLEETRUN_", "FLAGS_", "TRAINING_ROLE", "POD_", "PET_", "TORCH", "LOCAL_", "ROLE_",
                "MASTER_", "GROUP_")
    names = {"VIRTUAL_ENV", "OMP_NUM_THREADS", "CPU_NUM", "CUDA_VISIBLE_DEVICES", "PYTHONPATH", "RANK",
             "WORLD_SIZE", "PORT_RANGE"}
    kept = {k: v for k, v in os.environ.items() if k not in names and not k.startswith(prefixes)}
    kept.update(more)
    return kept


def wait_until(condition, what, seconds=DEADLINE):
    """Returns the first true value of condition(); fails with `what` when there is none in time."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.01)


def marked_pids(mark):
    """Living processes whose environment holds `mark`:
    the ones a test started, however they were re-parented."""
    found = set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if mark.encode() not in file.read().split(b"\0"):
                    continue
            with open(f"/proc/{entry}/stat") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            found.add(int(entry))
    return found


class Job:
    """One running fleetrun."""

    def __init__(self, arguments, directory, environment, **popen):
        self.directory = directory
        self.mark = f"TEST_MARK={os.getpid()}-{time.monotonic_ns()}"
        name, _, value = self.mark.partition("=")
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stdin", subprocess.DEVNULL)
        popen.setdefault("stderr", subprocess.PIPE)
        self.process = subprocess.Popen(
            [find_fleetrun(), *arguments],
            cwd=directory,
            env={**environment, name: value},
            **popen,
        )

    def finish(self, seconds=DEADLINE):
        out, err = self.process.communicate(timeout=seconds)
        self.status = self.process.returncode
        self.out = out.decode(errors="replace") if out is not None else ""
        self.err = err.decode(errors="replace")
        return self

    def signal(self, number):
        os.kill(self.process.pid, number)

    def survivors(self):
        return marked_pids(self.mark) - {self.process.pid}

    def log(self, name):
        return (self.directory / "log" / name).read_text()

    def wait_for_log(self, name, text):
        path = self.directory / "log" / name
        wait_until(lambda: path.exists() and text in path.read_text(), f"{text!r} in {name}")


class Workplace:
    """A directory with scripts, and fleetrun to run them."""

    def __init__(self, directory):
        self.directory = directory
        self.jobs = []

    def script(self, name, text, mode=0o644):
        path = self.directory / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def start(self, *arguments, environment=None, **popen):
        job = Job([str(a) for a in arguments], self.directory, environment or clean_environment(), **popen)
        self.jobs.append(job)
        return job

    def run(self, *arguments, seconds=DEADLINE, **options):
        return self.start(*arguments, **options).finish(seconds)

    def close(self):
        for job in self.jobs:
            if job.process.poll() is None:
                job.process.kill()
                job.process.communicate()
            for pid in job.survivors():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def refused(work, *arguments, status=125, says, environment=None, **options):
    """Runs fleetrun, which has to say one error with `says` in it, and to make nothing."""
    before = sorted(os.listdir(work.directory))
    job = work.run(*arguments, environment=environment, **options)
    assert job.status == status, job.err
    assert job.err.startswith("fleetrun: error: "), job.err
    assert job.err.count("error:") == 1 and "LAUNCH" not in job.err
    assert says in job.err, job.err
    assert job.out == ""
    assert sorted(os.listdir(work.directory)) == before
    return job

"""Surroundings that are odd or broken: a job runs in them as in any other,
or one error says what is wrong."""

import os
import resource
import signal
import subprocess

import pytest

from fleetrun_job import clean_environment, find_fleetrun, reachable_fleetrun, refused

ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="only root may")
ECHO = ("--nproc_per_node=2", "/bin/sh", "-c", "echo trainer $PADDLE_TRAINER_ID")


def runs(work, *arguments, environment=None, **options):
    job = work.run("--log_level=warning", *(arguments or ECHO), environment=environment, **options)
    assert (job.status, job.out, job.err) == (0, "trainer 0\n", ""), (job.status, job.out, job.err)
    assert job.log("workerlog.1") == "trainer 1\n"


def limited(what, soft, hard=None):
    return lambda: resource.setrlimit(what, (soft, soft if hard is None else hard))


VARIABLES = [
    {"LC_ALL": "tr_TR.UTF-8"},
    {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"},
    {"LC_ALL": "\x01nosuch"},
    {"TZ": ":/nosuch/\x01"},
    {"TMPDIR": "/nosuch\n"},
    {"HOME": ""},
    {"PATH": ""},
    {"RANK": "x", "WORLD_SIZE": "-1", "LOCAL_RANK": "9", "MASTER_PORT": "high",
     "TORCHELASTIC_RESTART_COUNT": "x"},
    {"PADDLE_TRAINER_ID": "zz", "PADDLE_TRAINERS_NUM": "", "TRAINING_ROLE": "KING", "PADDLE_PORT": "x",
     "POD_IP": "pod"},
    {"FLEETRUN_ATTEMPT": "x", "FLEETRUN_HEARTBEAT_FD": "99", "FLEETRUN_LISTEN": "x"},
]


@pytest.mark.parametrize("variables", VARIABLES, ids=lambda variables: next(iter(variables)))
def test_variables_that_make_no_sense_change_nothing(work, variables):
    runs(work, "--grace=2.5", *ECHO, environment=clean_environment(**variables))


def test_no_environment_at_all(work):
    runs(work, environment={})


@pytest.mark.parametrize("name, value, says", [
    ("PADDLE_NPROC_PER_NODE", "many", "PADDLE_NPROC_PER_NODE is 'many'"),
    ("PET_NPROC_PER_NODE", "many", "PET_NPROC_PER_NODE is 'many'"),
    ("PADDLE_MASTER", "nowhere", "'nowhere' is not an endpoint"),
    ("PADDLE_ENV_LIMIT_LEN", "much", "PADDLE_ENV_LIMIT_LEN is 'much'"),
    ("PORT_RANGE", "9:1", "PORT_RANGE is '9:1'"),
    ("PADDLE_JOB_ID", "../x", "PADDLE_JOB_ID is '../x'"),
    ("PADDLE_LOG_OVERWRITE", "maybe", "PADDLE_LOG_OVERWRITE is 'maybe'"),
])
def test_variables_that_are_settings_are_checked_like_flags(work, name, value, says):
    refused(work, "/bin/true", says=says, environment=clean_environment(**{name: value}))


@pytest.mark.parametrize("mask", [0, 0o777])
def test_any_umask(work, mask):
    runs(work, preexec_fn=lambda: os.umask(mask))
    modes = {path.stat().st_mode & 0o777 for path in work.directory.glob("log/*/0/*")}
    assert modes == {0o600 & ~mask}


def test_signals_ignored_or_blocked_by_the_parent(work):
    def strange():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD})

    runs(work, preexec_fn=strange, restore_signals=False)


@pytest.mark.parametrize("fds", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_standard_descriptors(work, fds):
    job = work.run("/bin/sh", "-c", "echo x; exit 3", preexec_fn=lambda: [os.close(fd) for fd in fds])
    assert job.status == 3 and job.log("workerlog.0") == "x\n", (job.status, job.err)


def test_a_current_directory_that_is_gone(work):
    def leave():
        os.mkdir("gone")
        os.chdir("gone")
        os.rmdir("../gone")

    assert "hint: change to one" in refused(work, *ECHO, says="the current directory has been removed",
                                            preexec_fn=leave).err


@ROOT_ONLY
def test_a_current_directory_that_may_not_be_read_or_written(work):
    fleetrun = reachable_fleetrun(work)
    log = work.directory.with_name(work.directory.name + "-log")
    log.mkdir()
    os.chown(log, 54321, 54321)
    work.directory.chmod(0o711)
    refused(work, *ECHO, says="Permission denied", executable=fleetrun, preexec_fn=lambda: os.setuid(54321))
    job = work.run("--log_level=warning", f"--log_dir={log}", *ECHO, executable=fleetrun,
                   preexec_fn=lambda: os.setuid(54321))
    assert (job.status, job.out) == (0, "trainer 0\n"), job.err


@ROOT_ONLY
def test_a_user_without_a_name(work):
    fleetrun = reachable_fleetrun(work)
    work.directory.chmod(0o777)
    runs(work, executable=fleetrun, preexec_fn=lambda: (os.setgid(54321), os.setuid(54321)))
    refused(work, "--servers=127.0.0.1:80", *ECHO[1:], says="is only for root", executable=fleetrun,
            preexec_fn=lambda: (os.setgid(54321), os.setuid(54321))) if int(
                open("/proc/sys/net/ipv4/ip_unprivileged_port_start").read()) > 80 else None


@pytest.mark.parametrize("files", range(27, 35))
def test_a_launcher_that_runs_out_of_files_is_no_crash(work, files):
    """Where there is none left for its entry, what listens for `fleetrun stop` goes as it has begun."""
    for _ in range(5):
        job = work.run("--server_num=1", "--trainer_num=4", "/bin/false",
                       preexec_fn=limited(resource.RLIMIT_NOFILE, files))
        assert job.status in (1, 125), job.err


def test_few_open_files(work):
    job = refused(work, *ECHO, says="2 processes need 24 open files, and 16 are allowed",
                  preexec_fn=limited(resource.RLIMIT_NOFILE, 16))
    assert "hint: raise the limit" in job.err
    refused(work, "--nproc_per_node=40", "/bin/true", says="open files",
            preexec_fn=limited(resource.RLIMIT_NOFILE, 60))
    refused(work, "--nproc_per_node=40", "/bin/true", says="no descriptor is left",
            preexec_fn=limited(resource.RLIMIT_NOFILE, 30))
    runs(work, preexec_fn=limited(resource.RLIMIT_NOFILE, 24))


def test_files_may_not_grow(work):
    job = work.run("--log_level=error", "/bin/echo", "x", preexec_fn=limited(resource.RLIMIT_FSIZE, 0))
    assert job.status == 128 + signal.SIGXFSZ and "SIGXFSZ" in job.err


def test_little_memory_to_address(work):
    runs(work, preexec_fn=limited(resource.RLIMIT_AS, 64 << 20))
    runs(work, preexec_fn=limited(resource.RLIMIT_STACK, 256 << 10))


def test_a_large_environment(work):
    """Five megabytes fit where the stack may be large;
    a little more than six never do, and the largest is named."""
    def large():
        resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))

    if resource.getrlimit(resource.RLIMIT_STACK)[1] not in (resource.RLIM_INFINITY,):
        pytest.skip("the stack is limited here")
    environment = clean_environment(**{f"BIG_{i}": "x" * 131_000 for i in range(40)})
    runs(work, environment=environment, preexec_fn=large)
    taken = sum(len(name) + len(value) + 10 for name, value in environment.items())
    while taken < (6 << 20) - 1500:
        size = min(130_000, (6 << 20) - 800 - taken)
        environment[f"MORE_{taken}"] = "y" * size
        taken += size + len(f"MORE_{taken}") + 10
    (work.directory / "log").rename(work.directory / "old")
    job = refused(work, *ECHO, says="arguments and environment have", environment=environment,
                  preexec_fn=large)
    assert "the largest variable is BIG_" in job.err and "hint: unset what the job does not need" in job.err


def test_endpoints_that_are_too_long_for_the_environment_are_in_a_file(work):
    job = work.run("--nproc_per_node=2", "/usr/bin/env",
                   environment=clean_environment(PADDLE_ENV_LIMIT_LEN="20"))
    assert job.status == 0, job.err
    seen = dict(line.split("=", 1) for line in job.log("workerlog.1").splitlines())
    assert "PADDLE_TRAINER_ENDPOINTS" not in seen and seen["PADDLE_TRAINERS_NUM"] == "2"
    import json

    with open(seen["PADDLE_BACKUP_ENV_PATH"]) as file:
        backup = json.load(file)
    assert list(backup) == ["PADDLE_TRAINER_ENDPOINTS"]
    assert backup["PADDLE_TRAINER_ENDPOINTS"].split(",")[1] == seen["PADDLE_CURRENT_ENDPOINT"]
    assert os.stat(seen["PADDLE_BACKUP_ENV_PATH"]).st_mode & 0o777 == 0o600


def in_own_mounts(work, script, own="-m"):
    """Runs a shell script that has mounts (-m) or a network (-n) of its own; skips where it may not."""
    if subprocess.run(["unshare", own, "true"], capture_output=True).returncode != 0:
        pytest.skip("namespaces of one's own are not allowed here")
    command = script.replace("FLEETRUN", find_fleetrun())
    return subprocess.run(["unshare", own, "sh", "-ec", command], cwd=work.directory,
                          env=clean_environment(), capture_output=True, text=True, timeout=30)


@ROOT_ONLY
def test_no_devices_at_all(work):
    job = in_own_mounts(work, "mount -t tmpfs none /dev; exec FLEETRUN /bin/true")
    assert job.returncode == 125 and "error: there is no /dev/null" in job.stderr and "mknod" in job.stderr


@ROOT_ONLY
def test_a_file_system_without_programs(work):
    (work.directory / "mounted").mkdir()
    job = in_own_mounts(work, "mount -t tmpfs -o noexec none mounted; cp /bin/true mounted; "
                              "exec FLEETRUN mounted/true")
    assert job.returncode == 126 and "mounted noexec: copy it elsewhere" in job.stderr


@ROOT_ONLY
def test_no_proc(work):
    job = in_own_mounts(work, "mount -t tmpfs none /proc; exec FLEETRUN /bin/true")
    assert (job.returncode == 125 and "error: there is no /proc" in job.stderr
            and "hint: mount it" in job.stderr)


@ROOT_ONLY
@pytest.mark.parametrize("place", ["/dev/shm", "/run", "/var/tmp"])
def test_no_room_for_temporary_files(work, place):
    job = in_own_mounts(work,
                        f"mount -t tmpfs -o ro none {place}; exec FLEETRUN --log_level=warning /bin/echo x")
    assert (job.returncode, job.stdout, job.stderr) == (0, "x\n", "")


@ROOT_ONLY
@pytest.mark.parametrize(("count", "is_told"), [(1, False), (2, True)])
def test_a_loopback_that_is_down_is_told_where_processes_need_it(work, count, is_told):
    job = in_own_mounts(work, f"exec FLEETRUN --nproc_per_node={count} /bin/echo x", "-n")
    assert job.returncode == 0, job.stderr
    assert ("the loopback interface is down" in job.stderr) == is_told

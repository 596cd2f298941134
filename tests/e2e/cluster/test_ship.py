"""--ship: hosts that have sshd and nothing of the job get fleetrun, the script's folder and the virtual
environment through ssh (tests/support/hosts_rig.py)."""

import json
import os
import signal
import subprocess
import sys

import pytest

from fleetrun_job import wait_until

TRAIN = """
import os, pathlib, sys
import helper
place = pathlib.Path("out-" + os.environ["PADDLE_TRAINER_ID"])
place.write_text("trained")
print(helper.NAME, os.environ["PADDLE_TRAINER_ID"], os.getcwd(), pathlib.Path("data/rows.txt").read_text().strip(),
      sys.argv[1:], flush=True)
"""


@pytest.fixture
def project(rig):
    """A project on h1 only: a script, a module beside it, data, and what others make anew."""
    h1 = rig.hosts[0]
    h1.write("train.py", TRAIN)
    h1.write("helper.py", "NAME = 'helper one'\n")
    for folder in ("data", ".git", "__pycache__"):
        (h1.files / folder).mkdir()
        (h1.files / folder / "rows.txt").write_text("three rows\n")
    return h1


def store(host):
    return host.home / ".cache" / "fleetrun" / "ship"


def mirror(host, rig):
    return store(host) / "from" / "root@h1" / str(rig.place).lstrip("/")


def ship(head, *flags, hosts="h2,h3", script=("train.py",), seconds=30):
    return head.fleetrun(
        f"--hosts={hosts}",
        "--ship",
        "--show=all",
        "--python=" + sys.executable,
        *flags,
        *script,
        seconds=seconds,
    )


def sent(job):
    """MiB, hosts."""
    line = next(line for line in job.err.splitlines() if "Files have travelled" in line)
    words = line.split("travelled: ")[1].split()
    return float(words[0]), int(words[3])


def test_hosts_with_nothing_there_train_and_the_second_time_nothing_is_sent(rig, project):
    job = ship(project, "train.py", "a b", "--c=$d", script=())
    assert job.status == 0, job.err + job.out
    _, h2, h3, *_ = rig.hosts
    for rank, host in enumerate((h2, h3)):
        place = f"{rig.home}/.cache/fleetrun/ship/from/root@h1{rig.place}"
        assert f"helper one {rank} {place} three rows ['a b', '--c=$d']" in job.out, job.out
        there = mirror(host, rig)
        assert (there / f"out-{rank}").read_text() == "trained"
        assert not (there / ".git").exists() and not (there / "__pycache__" / "rows.txt").exists()
        assert not (host.files / "train.py").exists()
        assert (project.files / "log" / host.name).is_dir(), "logs were brought"
    assert sent(job)[0] > 1 and sent(job)[1] == 2
    again = ship(project)
    assert again.status == 0 and sent(again) == (0.0, 0), again.err
    project.write("helper.py", "NAME = 'helper two'\n")
    (project.files / "data" / "rows.txt").rename(project.files / "data" / "rows.old")
    (project.files / "data" / "rows.txt").write_text("two\n")
    third = ship(project)
    assert third.status == 0 and "helper two" in third.out and "two" in third.out and sent(third)[1] == 2
    (project.files / "data" / "rows.old").unlink()
    assert ship(project).status == 0
    assert not (mirror(h2, rig) / "data" / "rows.old").exists(), "what is gone here goes there"
    assert (mirror(h2, rig) / "out-0").exists(), "what the job made there stays"


def test_what_travelled_is_removed_where_that_is_asked_for(rig, project):
    job = ship(project, "--ship_remove")
    assert job.status == 0, job.err + job.out
    h2 = rig.hosts[1]
    left = sorted(
        str(path.relative_to(mirror(h2, rig))) for path in mirror(h2, rig).rglob("*") if path.is_file()
    )
    assert left == ["out-0"], left
    assert not list(store(h2).glob("launcher-*"))


def test_a_file_that_somebody_changed_there_comes_again(rig, project):
    assert ship(project).status == 0
    h2 = rig.hosts[1]
    path = mirror(h2, rig) / "helper.py"
    before = path.stat()
    path.write_text("NAME = 'helper six'\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    job = ship(project)
    assert job.status == 0 and "helper six" not in job.out and sent(job)[1] == 1, job.out


def test_a_full_disk_and_a_read_only_home_are_told_with_their_host_and_nothing_starts(rig, project):
    _, h2, h3, *_ = rig.hosts
    h2.run(
        ["sh", "-c", f"mkdir -p {rig.home}/.cache && mount -t tmpfs -o size=4m none {rig.home}/.cache"],
        check=True,
        directory="/",
    )
    h3.run(
        ["sh", "-c", f"mkdir -p {rig.home}/.cache && mount -t tmpfs -o ro none {rig.home}/.cache"],
        check=True,
        directory="/",
    )
    try:
        job = ship(project)
        assert job.status == 125
        assert "2 of 2 hosts cannot be used; nothing was started" in job.err
        assert "h2: fleetrun cannot be put there" in job.err and "o space left" in job.err, job.err
        assert "h3: fleetrun cannot be put there" in job.err and "Read-only file system" in job.err, job.err
        assert "--ship_to=DIR names another place" in job.err
        (project.files / "big").write_bytes(os.urandom(64) * (1 << 19))
        job = ship(project, "--ship_to=/dev/shm/ship", hosts="h2")
        assert job.status == 0, job.err
        h2.run(["mount", "-o", "remount,size=24m", "none", f"{rig.home}/.cache"], check=True, directory="/")
        job = ship(project, hosts="h2")
        assert job.status == 125 and "has room for" in job.err and "h2: " in job.err, job.err
    finally:
        for host in (h2, h3):
            host.run(["umount", f"{rig.home}/.cache"], directory="/")


def test_a_place_without_programs_or_of_somebody_else_is_told(rig, project):
    h2 = rig.hosts[1]
    h2.run(
        ["sh", "-c", "mkdir -p /dev/shm/noexec && mount -t tmpfs -o noexec none /dev/shm/noexec"],
        check=True,
        directory="/",
    )
    try:
        job = ship(project, "--ship_to=/dev/shm/noexec/ship", hosts="h2")
        assert job.status == 125 and "h2: fleetrun does not run there" in job.err and "noexec" in job.err, (
            job.err
        )
    finally:
        h2.run(["umount", "/dev/shm/noexec"], directory="/")
    h2.run(["sh", "-c", "mkdir -p /dev/shm/theirs && chown 12345 /dev/shm/theirs"], check=True, directory="/")
    job = ship(project, "--ship_to=/dev/shm/theirs", hosts="h2")
    assert job.status == 125 and "/dev/shm/theirs belongs to somebody else" in job.err, job.err


def test_a_noisy_shell_does_not_hinder(rig, project):
    h2 = rig.hosts[1]
    (h2.home / ".profile").write_text("echo from the profile\n")
    (h2.home / ".ssh" / "rc").write_text("echo Welcome to h2; echo and good luck >&2\n")
    try:
        job = ship(project, hosts="h2")
        assert job.status == 0 and "helper one 0" in job.out, job.err
    finally:
        (h2.home / ".ssh" / "rc").unlink()


def test_ctrl_c_while_files_travel_leaves_no_half_of_one(rig, project):
    _, h2, h3, *_ = rig.hosts
    with open(project.files / "big", "wb") as file:
        file.write(os.urandom(1 << 20) * 256)
    job = project.start("--hosts=h2,h3", "--ship", "--python=" + sys.executable, "train.py")
    wait_until(lambda: any(store(h2).glob(".incoming-*")), "a file on its way")
    job.signal(signal.SIGINT)
    assert job.finish(20).status == 130
    for host in (h2, h3):
        wait_until(lambda host=host: not host.processes(), f"the end of {host.name}")
        assert not list(store(host).glob(".incoming-*")) and not list(mirror(host, rig).glob("big"))
    assert "out-0" not in os.listdir(project.files)


def test_a_host_that_is_unplugged_while_files_travel_is_named(rig, project):
    _, h2, h3, *_ = rig.hosts
    with open(project.files / "big", "wb") as file:
        file.write(os.urandom(1 << 20) * 256)
    job = project.start(
        "--hosts=h2,h3",
        "--ship",
        "--ssh=ssh -o ServerAliveInterval=1 -o ServerAliveCountMax=2",
        "--python=" + sys.executable,
        "train.py",
    )
    wait_until(lambda: any(store(h2).glob(".incoming-*")), "a file on its way")
    h2.link(up=False)
    assert job.finish(40).status == 125
    assert "h2: " in job.err and "nothing was started" in job.err, job.err


@pytest.mark.parametrize(
    "flags, said",
    [
        (["--ship", "--path=/usr/bin/fleetrun"], "--ship says where fleetrun and the files lie"),
        (["--ship_to=/tmp/x"], "add --ship"),
        (["--ship", "--ship_to=/tmp/$x"], "a plain path is needed"),
        (["--ship=nowhere"], "which is not there"),
    ],
)
def test_what_does_not_go_together_is_refused_before_a_login(rig, project, flags, said):
    job = project.fleetrun("--hosts=h2", *flags, "train.py")
    assert job.status == 125 and said in job.err, job.err
    assert not store(rig.hosts[1]).exists()


def test_a_script_that_lies_in_the_home_directory_is_not_the_whole_of_it(rig, project):
    (project.home / "train.py").write_text("print('alone')\n")
    job = project.fleetrun("--hosts=h2", "--ship", "train.py", directory=rig.home)
    assert job.status == 125 and f"all of {rig.home} would travel" in job.err, job.err
    job = project.fleetrun(
        "--hosts=h2", "--ship=train.py", "--python=" + sys.executable, "train.py", directory=rig.home
    )
    assert job.status == 0 and "alone" in job.out, job.err


@pytest.fixture
def environment(rig, project):
    """A virtual environment on h1 only, with a package of its own and one in a folder elsewhere; h2 has no
    standard library of Python and no libz."""
    _, h2, *_ = rig.hosts
    place = project.files / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True, cwd="/")
    config = place / "pyvenv.cfg"
    packages = place / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    (packages / "inside.py").write_text("NAME = 'inside'\n")
    (project.files / "elsewhere").mkdir()
    (project.files / "elsewhere" / "outside.py").write_text("NAME = 'outside'\n")
    (packages / "more.pth").write_text(f"{rig.place}/elsewhere\n")
    project.write("train.py", "import ctypes, inside, json, outside, sys, zlib\n"
                              "print(inside.NAME, outside.NAME, sys.prefix, json.__file__, flush=True)\n")
    library = os.path.dirname(os.path.realpath(json.__file__))
    library = os.path.dirname(library)
    h2.run(["mount", "-t", "tmpfs", "none", library], check=True, directory="/")
    yield config
    h2.run(["umount", library], check=True, directory="/")


def test_an_environment_travels_with_its_interpreter_and_standard_library(rig, project, environment):
    _, h2, *_ = rig.hosts
    python = f"--python={rig.place}/env/bin/python"
    without = project.fleetrun("--hosts=h2", "--ship", python, "train.py")
    assert without.status != 0
    for again in (False, True):
        job = project.fleetrun("--hosts=h2", "--ship=venv", "--show=all", python, "train.py", seconds=60)
        assert job.status == 0, job.err + job.out
        top = f"{rig.home}/.cache/fleetrun/ship/from/root@h1"
        assert f"inside outside {top}{rig.place}/env {top}/usr/lib" in job.out, job.out
        assert (sent(job)[1] == 0) == again, job.err
    job = project.fleetrun("--hosts=h2", "--ship=venv", "--ship_remove", python, "train.py", seconds=60)
    assert job.status == 0, job.err
    left = [path for path in store(h2).rglob("*") if path.is_file()]
    assert not left, left


def test_the_systems_python_is_not_an_environment(rig, project):
    job = project.fleetrun("--hosts=h2", "--ship=venv", "--python=/usr/bin/python3", "train.py")
    assert job.status == 125 and "there is no virtual environment" in job.err, job.err

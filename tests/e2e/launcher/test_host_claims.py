"""Two jobs of a user on one host do not take the same devices or pinned cores, unless they are told to."""

import subprocess

import pytest

from fleetrun_job import DEADLINE, clean_environment, find_fleetrun, wait_until

SHOW = """#!/bin/sh
echo "sees $CUDA_VISIBLE_DEVICES, takes $FLAGS_selected_gpus"
while [ ! -e go ]; do sleep 0.01; done
"""


@pytest.fixture
def host(work, tmp_path_factory):
    return Host(work, tmp_path_factory.mktemp("run") / "fleetrun")


class Host:
    """A host with four devices, and the jobs of one user there."""

    def __init__(self, work, runtime):
        self.work = work
        self.runtime = runtime
        self.environment = clean_environment(FLEETRUN_RUN_DIR=str(runtime), CUDA_VISIBLE_DEVICES="0,1,2,3")
        work.script("show.sh", SHOW, 0o755)

    def start(self, log, *flags):
        return self.work.start(f"--log_dir={log}", *flags, "./show.sh", environment=self.environment)

    def shown(self, log, rank=0):
        """What the trainer says of its devices."""
        path = self.work.directory / log / f"workerlog.{rank}"
        return wait_until(lambda: path.exists() and "takes" in (text := path.read_text()) and text.strip(),
                          f"{path} says what it takes")

    def run(self, *flags, script="true"):
        return subprocess.run([find_fleetrun(), *flags, script], cwd=self.work.directory,
                              env=self.environment, capture_output=True, text=True, timeout=DEADLINE)

    def claims(self):
        return list(self.runtime.glob("*.claims"))

    def let_go(self):
        (self.work.directory / "go").touch()


def test_a_second_job_takes_other_devices_and_a_third_is_told_who_has_them(host):
    first = host.start("one", "--nproc_per_node=2")
    assert host.shown("one", 1) == "sees 0,1,2,3, takes 1"
    second = host.start("two", "--nproc_per_node=2")
    assert host.shown("two", 1) == "sees 2,3, takes 1"
    third = host.run("--nproc_per_node=2")
    assert third.returncode == 125
    assert "2 trainers need devices, and 0 of 4 are free; other jobs of yours hold 0 (pod " in third.stderr
    assert "share devices with --devices=0,1" in third.stderr
    host.let_go()
    assert (first.finish().status, second.finish().status) == (0, 0)
    assert host.claims() == []


def test_devices_that_are_named_are_shared_and_that_is_said(host):
    first = host.start("one", "--devices=2")
    host.shown("one")
    second = host.start("two", "--devices=2")
    assert host.shown("two") == "sees 2, takes 0"
    host.let_go()
    assert first.finish().status == 0
    result = second.finish()
    assert result.status == 0
    assert "device 2 is used by pod " in result.err


def test_a_job_that_was_killed_holds_nothing(host):
    first = host.start("one", "--nproc_per_node=4")
    host.shown("one", 3)
    assert len(host.claims()) == 1
    first.process.kill()
    first.process.wait()
    assert host.run("--nproc_per_node=4").returncode == 0
    assert host.claims() == []


def test_a_job_in_the_background_holds_its_devices(host):
    assert host.run("--detach", "--nproc_per_node=3", script="./show.sh").returncode == 0
    assert host.run("--nproc_per_node=2").returncode == 125
    host.let_go()
    wait_until(lambda: not host.claims(), "the end of the job in the background")
    assert host.run("--nproc_per_node=2").returncode == 0


def test_cores_that_are_pinned_are_not_pinned_twice(host):
    host.environment["CUDA_VISIBLE_DEVICES"] = ""
    first = host.start("one", "--bind=core")
    host.shown("one")
    second = host.start("two", "--bind=core")
    host.shown("two")
    host.let_go()
    assert first.finish().status == 0
    result = second.finish()
    assert result.status == 0
    assert "cores are pinned by other jobs (fleetrun list), so nothing is bound" in result.err


def test_jobs_without_devices_ask_nobody(host):
    host.environment["CUDA_VISIBLE_DEVICES"] = ""
    assert host.run("--nproc_per_node=2").returncode == 0
    assert not (host.runtime / ".claims.lock").exists()

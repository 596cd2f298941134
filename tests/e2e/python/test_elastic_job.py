"""Parameter-server jobs whose hosts come and go while the others train:
launchers on 127.0.0.1 … 127.0.0.4."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import pytest

from conftest import environment
from flow import LIMIT
from fleetrun_job import find_fleetrun, wait_until

TRAIN = """
import json, os, sys
import numpy
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
from fleetrun import elastic
from fleetrun.distributed.fleet._fleet import the_fleet

paddle.enable_static()
fleet.init(is_collective=False)
x = paddle.static.data(name="x", shape=[None, 4], dtype="float32")
y = paddle.static.data(name="y", shape=[None, 1], dtype="float32")
out = paddle.nn.Linear(4, 1)(x)
loss = paddle.mean((out - y) * (out - y))
strategy = fleet.DistributedStrategy()
strategy.a_sync = sys.argv[1] == "async"
fleet.distributed_optimizer(paddle.optimizer.SGD(learning_rate=0.001), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
worlds = []
elastic.on_world_change(lambda world: worlds.append(world.epoch))
step = 0


def said(**more):
    here = {"pid": os.getpid(), "step": step, "epoch": elastic.epoch(), "worlds": worlds, "rank": fleet.worker_index(),
            "late": the_fleet.training.client.is_late, **more}
    name = f"trainer-{elastic.world().node}"
    with open(name + ".new", "w") as file:
        json.dump(here, file)
    os.replace(name + ".new", name)


"""

STEPS = """
while not os.path.exists("enough"):
    a = numpy.ones((8, 4), "float32")
    exe.run(paddle.static.default_main_program(), feed={"x": a, "y": a[:, :1]}, fetch_list=[loss])
    step += 1
    said(files=fleet.util.get_file_shard(list("abcdef")))
fleet.stop_worker()
"""

PASSES = """
while not os.path.exists("enough"):
    files = fleet.util.get_file_shard([f"part-{i}" for i in range(6)])
    dataset = paddle.distributed.QueueDataset()
    dataset.init(use_var=[x, y], pipe_command="cat", batch_size=50, thread_num=1)
    dataset.set_filelist(files)
    exe.train_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[loss], fetch_info=["loss"])
    fleet.barrier_worker()
    step += 1
    said(files=files, examples=exe.last_pass.examples, all=fleet.util.all_gather(fleet.worker_index()))
fleet.stop_worker()
"""


class Hosts:
    """Launchers that meet at 127.0.0.1, in one directory."""

    def __init__(self, folder, port, mode, loop=STEPS):
        self.folder, self.port, self.mode, self.launchers = folder, port, mode, {}
        (folder / "train.py").write_text(TRAIN + loop)

    def start(self, number, servers, trainers):
        host = f"127.0.0.{number}"
        argv = [find_fleetrun(), "--nnodes=2:3", f"--master=127.0.0.1:{self.port}", f"--host={host}",
                f"--job_id=elastic{self.port}", f"--server_num={servers}", f"--trainer_num={trainers}",
                f"--log_dir=log{number}", f"--python={sys.executable}", "train.py", self.mode]
        with open(self.folder / f"out{number}", "w") as out:
            self.launchers[number] = subprocess.Popen(argv, cwd=self.folder, stdout=out, stderr=out,
                                                      env=environment(),
                                                      stdin=subprocess.DEVNULL)

        # All of them are on this machine, where each could coordinate: the first one does.
        if len(self.launchers) == 1:
            wait_until(self.somebody_coordinates, "the first host waits for the others")

    def somebody_coordinates(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def said(self):
        """{process id: what that trainer said last}"""
        found = {}
        for path in self.folder.glob("trainer-*"):
            if not path.name.endswith(".new"):
                said = json.loads(path.read_text())
                found[said["pid"]] = said
        return found

    def wait_for(self, what, condition):
        """The first true value of condition(what the trainers say)."""
        return wait_until(lambda: condition(self.said()), what)

    def text(self, number):
        logs = "".join(path.read_text() for path in sorted((self.folder / f"log{number}").glob("*log.0")))
        return (self.folder / f"out{number}").read_text() + logs

    def finish(self, *numbers):
        """Lets the trainers end; the named launchers have to end well."""
        (self.folder / "enough").touch()
        for number in numbers:
            assert self.launchers[number].wait(LIMIT) == 0, self.text(number)

    def close(self):
        for launcher in self.launchers.values():
            for end in (signal.SIGCONT, signal.SIGTERM):
                if launcher.poll() is None:
                    launcher.send_signal(end)
        for launcher in self.launchers.values():
            try:
                launcher.wait(LIMIT)
            except subprocess.TimeoutExpired:
                launcher.kill()
                launcher.wait()


@pytest.fixture
def hosts(tmp_path, ports):
    made = []

    def make(*arguments):
        made.append(Hosts(tmp_path, *ports(1), *arguments))
        return made[-1]

    yield make
    for one in made:
        one.close()


def two_train(said):
    return said if sum(one["step"] > 3 for one in said.values()) == 2 else None


def test_a_host_is_lost_and_another_comes_while_the_rest_trains_on_synchronously(hosts):
    job = hosts("sync")
    job.start(1, servers=1, trainers=0)
    job.start(2, servers=0, trainers=1)
    job.start(3, servers=0, trainers=1)
    before = job.wait_for("two trainers train", two_train)
    assert not any(one["late"] for one in before.values())
    job.launchers[3].kill()
    job.launchers[3].wait()
    [survivor] = job.wait_for("the survivor trains on", lambda said: [
        pid for pid, one in said.items() if one["epoch"] == 2 and one["step"] > before[pid]["step"] + 3])
    assert survivor in before
    assert job.said()[survivor]["files"] == list("abcdef")
    job.start(4, servers=0, trainers=1)
    [late] = job.wait_for("a new trainer trains", lambda said: [
        pid for pid, one in said.items() if pid not in before and one["step"] > 3])
    after = job.wait_for("the survivor hears of it", lambda said: said if said[survivor]["epoch"] == 3
                         else None)
    assert after[late]["late"]
    assert {after[survivor]["rank"], after[late]["rank"]} == {0, 1}
    said = job.wait_for("both split the files", lambda said: said if sorted(
        said[survivor]["files"] + said[late]["files"]) == list("abcdef") else None)
    assert said[survivor]["worlds"] == [2, 3]
    job.finish(1, 2, 4)


def test_passes_over_files_with_barriers_and_sums_go_on_too(hosts, tmp_path):
    for i in range(6):
        (tmp_path / f"part-{i}").write_text("4 1 1 1 1 1 1\n" * 500)
    job = hosts("sync", PASSES)
    job.start(1, servers=1, trainers=0)
    job.start(2, servers=0, trainers=1)
    job.start(3, servers=0, trainers=1)
    both = job.wait_for("two trainers train", lambda said: said if len(said) == 2 and all(
        one["all"] == [0, 1] and one["examples"] == 1500 for one in said.values()) else None)
    job.launchers[3].kill()
    [survivor] = job.wait_for("the survivor reads all files", lambda said: [
        pid for pid, one in said.items() if one["examples"] == 3000 and one["all"] == [one["rank"]]])
    assert survivor in both
    job.start(4, servers=0, trainers=1)
    after = job.wait_for("they share the files again", lambda said: said if len(said) == 3 and all(
        one["all"] == [0, 1] and one["examples"] == 1500 for one in said.values() if one["epoch"] == 3)
        and len(
            [one for one in said.values() if one["epoch"] == 3]) == 2 else None)
    assert after[survivor]["epoch"] == 3
    job.finish(1, 2, 4)


def inits_of(launcher):
    children = pathlib.Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return [int(pid) for pid in children
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "fleetrun-init"]


def test_a_trainer_whose_host_was_taken_for_lost_is_refused_by_the_servers(hosts):
    job = hosts("async")
    job.start(1, servers=1, trainers=0)
    job.start(2, servers=0, trainers=1)
    job.start(3, servers=0, trainers=1)
    job.wait_for("two trainers train", two_train)
    # Its launcher sleeps, and so does the fleetrun-init that would end the trainer;
    # that one has not heard of anything.
    sleepers = [*inits_of(job.launchers[3].pid), job.launchers[3].pid]
    assert len(sleepers) == 2
    for pid in sleepers:
        os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: "comes with stale epoch 1, the job is at 2" in job.text(3),
               "the trainer of epoch 1 is refused")
    job.wait_for("the other one trains on", lambda said: [one for one in said.values() if one["epoch"] == 2])
    assert "epoch 2 is without trainer " in job.text(1)
    for pid in sleepers:
        os.kill(pid, signal.SIGCONT)
    job.finish(1, 2)

"""Jobs whose parameter servers are killed, and go on: --ps_checkpoint, --max_restart."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from conftest import environment
from flow import LIMIT
from fleetrun_job import find_fleetrun, wait_until

TRAIN = """
import json, os, sys, time
import numpy
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

paddle.enable_static()
paddle.seed(1)
fleet.init(is_collective=False)
x = paddle.static.data(name="x", shape=[None, 4], dtype="float32")
y = paddle.static.data(name="y", shape=[None, 1], dtype="float32")
out = paddle.nn.Linear(4, 1)(x)
loss = paddle.mean((out - y) * (out - y))
strategy = fleet.DistributedStrategy()
strategy.a_sync = sys.argv[1] == "async"
fleet.distributed_optimizer(paddle.optimizer.Adam(learning_rate=0.01), strategy).minimize(loss)
if fleet.is_server():
    with open("server.new", "w") as file:
        file.write(str(os.getpid()))
    os.replace("server.new", "server")
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
losses = []
for step in range(40):
    # The first trainer waits for the test; the others wait for it, in whatever they do.
    if fleet.worker_index() == 0 and step in (10, 25):
        open(f"at-{step}", "w").close()
        while not os.path.exists(f"go-{step}"):
            time.sleep(0.01)
    a = numpy.random.RandomState(100 * step + fleet.worker_index()).rand(8, 4).astype("float32")
    result = exe.run(paddle.static.default_main_program(), feed={"x": a, "y": a.sum(axis=1, keepdims=True)},
                     fetch_list=[loss])
    losses.append(float(result[0]).hex())
with open(f"losses-{fleet.worker_index()}", "w") as file:
    json.dump(losses, file)
fleet.stop_worker()
"""


def train(directory, kills, trainers, mode, *flags):
    """The losses of all trainers, as they wrote them, and what fleetrun said."""
    (directory / "train.py").write_text(TRAIN)
    if not kills:
        for step in (10, 25):
            (directory / f"go-{step}").touch()
    command = [find_fleetrun(), "--server_num=1", f"--trainer_num={trainers}", f"--python={sys.executable}",
               *flags,
               "train.py", mode]
    killed = set()
    with open(directory / "said", "wb") as said:
        job = subprocess.Popen(command, cwd=directory, env=environment(), stdin=subprocess.DEVNULL,
                               stdout=said, stderr=said)
    try:
        for step in (10, 25) if kills else ():
            wait_until((directory / f"at-{step}").exists, f"step {step}", LIMIT)
            wait_until(lambda: int((directory / "server").read_text()) not in killed, "another server", LIMIT)
            killed.add(int((directory / "server").read_text()))
            os.kill(int((directory / "server").read_text()), signal.SIGKILL)
            (directory / f"go-{step}").touch()
        status = job.wait(LIMIT)
    finally:
        job.kill()
        job.wait()
    text = (directory / "said").read_text(errors="replace")
    assert status == 0, text
    return [json.loads((directory / f"losses-{rank}").read_text()) for rank in range(trainers)], text


@pytest.mark.parametrize("mode,trainers", [("sync", 2), ("async", 1)])
def test_a_server_that_is_killed_twice_changes_nothing(tmp_path, mode, trainers):
    for name in ("calm", "killed"):
        (tmp_path / name).mkdir()
    calm, _ = train(tmp_path / "calm", False, trainers, mode, "--ps_checkpoint=kept")
    killed, said = train(tmp_path / "killed", True, trainers, mode, "--ps_checkpoint=kept",
                         "--ps_checkpoint_interval=1")
    assert killed == calm
    logs = "".join(log.read_text(errors="replace") for log in (tmp_path / "killed").glob("**/serverlog.0*"))
    assert logs.count("goes on from checkpoint") >= 2, said
    assert (tmp_path / "killed" / "kept" / "server-00000" / "manifest").exists()


def test_with_max_restart_checkpoints_lie_beside_the_logs(tmp_path):
    losses, _ = train(tmp_path, True, 2, "sync", "--max_restart=3", "--log_dir=logs")
    assert len(losses[1]) == 40
    assert list((tmp_path / "logs").glob(".ps-*/server-00000/manifest"))


def test_what_an_earlier_run_has_kept_is_refused_replaced_or_gone_on_with(tmp_path):
    first, _ = train(tmp_path, False, 1, "async", "--ps_checkpoint=kept")
    before = {path: path.read_bytes() for path in (tmp_path / "kept").glob("*/*")}
    command = [find_fleetrun(), "--server_num=1", "--trainer_num=1", f"--python={sys.executable}",
               "--ps_checkpoint=kept",
               "train.py", "async"]
    refused = subprocess.run(command, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL,
                             capture_output=True,
                             text=True, timeout=LIMIT)
    assert refused.returncode == 125
    assert refused.stderr.splitlines()[0].startswith(
        f"fleetrun: error: {tmp_path}/kept has the checkpoint of an earlier run")
    assert "--ps_checkpoint_found=resume" in refused.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "kept").glob("*/*")} == before
    missing = subprocess.run([*command[:-3], "--ps_checkpoint=empty", "--ps_checkpoint_found=require",
                              "train.py"],
                             cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, timeout=LIMIT)
    assert missing.returncode == 125
    assert missing.stderr.splitlines()[0] == (
        f"fleetrun: error: {tmp_path}/empty has no checkpoint of server 0 to go on from")
    resumed, _ = train(tmp_path, False, 1, "async", "--ps_checkpoint=kept", "--ps_checkpoint_found=require")
    assert float.fromhex(resumed[0][0]) < float.fromhex(first[0][0]) / 2
    again, _ = train(tmp_path, False, 1, "async", "--ps_checkpoint=kept", "--ps_checkpoint_found=replace")
    assert again == first


COUNT = """
import json, os, sys
import numpy as np
from fleetrun import ps

with open(f"pid-{os.getpid()}", "w"):
    pass
tables = [ps.SparseTable("count", 1, rule="sum")]
if ps.is_server():
    ps.Server(tables).wait()
    sys.exit(0)
rank, pushes = int(os.environ["FLEETRUN_RANK"]), int(sys.argv[1])
acknowledged = os.open(f"acknowledged-{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
with ps.Client(tables, identity=rank + 1) as client:
    done = os.fstat(acknowledged).st_size
    assert done < client.next_change, f"{done} pushes were acknowledged, the servers go on at {client.next_change}"
    while client.next_change <= pushes:
        number = client.next_change
        client.push("count", np.array([number % 7, 7 + number % 5], np.uint64), np.ones((2, 1), "float32"))
        if number > done:
            os.write(acknowledged, b".")
    client.barrier()
    if rank == 0:
        with open("result", "w") as file:
            json.dump(client.pull("count", np.arange(12, dtype=np.uint64))[:, 0].tolist(), file)
    client.barrier()
"""


def kill(pid):
    """Kills a process of COUNT's, if it is still there, and returns when it is gone."""
    def is_there():
        with contextlib.suppress(OSError):
            return "count.py" in pathlib.Path(f"/proc/{pid}/cmdline").read_text()
        return False

    if is_there():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_there(), f"the end of process {pid}", LIMIT)


def test_a_job_that_was_killed_whole_goes_on_with_every_push_once(tmp_path):
    (tmp_path / "count.py").write_text(COUNT)
    pushes = 4000
    command = [find_fleetrun(), "--server_num=2", "--trainer_num=2", f"--python={sys.executable}",
               "--ps_checkpoint=kept",
               "--ps_checkpoint_found=resume", "--ps_checkpoint_interval=1", "count.py", str(pushes)]

    def acknowledged():
        return [path.stat().st_size for path in tmp_path.glob("acknowledged-*")]

    for life in range(3):
        with open(tmp_path / "said", "wb") as said:
            job = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL,
                                   stdout=said, stderr=said)
        try:
            enough = 500 * (life + 1)
            wait_until(lambda: len(acknowledged()) == 2 and min(acknowledged()) > enough, f"{enough} pushes",
                       LIMIT)
        finally:
            job.kill()
            job.wait()
            for mark in tmp_path.glob("pid-*"):
                kill(int(mark.name.partition("-")[2]))
                mark.unlink()
    assert not (tmp_path / "result").exists()
    done = subprocess.run(command, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True,
                          timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    wanted = [0] * 12
    for number in range(1, pushes + 1):
        wanted[number % 7] += 2
        wanted[7 + number % 5] += 2
    assert json.loads((tmp_path / "result").read_text()) == wanted


@pytest.mark.parametrize("flag,says", [
    ("--ps_checkpoint=", "--ps_checkpoint"),
    ("--ps_log_sync=maybe", "--ps_log_sync"),
    ("--ps_checkpoint_found=keep", "--ps_checkpoint_found"),
    ("--ps_checkpoint_interval=soon", "--ps_checkpoint_interval"),
])
def test_flags_that_mean_nothing_are_refused(tmp_path, flag, says):
    (tmp_path / "train.py").write_text(TRAIN)
    done = subprocess.run([find_fleetrun(), "--server_num=1", "--trainer_num=1", flag, "train.py"],
                          cwd=tmp_path,
                          env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=LIMIT)
    assert done.returncode == 125
    assert says in done.stderr.splitlines()[0]


@pytest.mark.parametrize("plant", ["log-0000000000000001", "log-0000000000000002", "lock", "directory"])
def test_links_that_somebody_planted_lead_nowhere(tmp_path, plant):
    """Where others may write, a name that a server is about to make may be theirs already."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("kept")
    server = tmp_path / "kept" / "server-00000"
    if plant == "directory":
        server.parent.mkdir()
        server.symlink_to(victim)
    else:
        server.mkdir(parents=True)
        server.chmod(0o777)
        (server / plant).symlink_to(victim / "precious")
    (tmp_path / "train.py").write_text(TRAIN.replace("range(40)", "range(4)"))
    command = [find_fleetrun(), "--server_num=1", "--trainer_num=1", f"--python={sys.executable}",
               "--ps_checkpoint=kept", "train.py", "async"]
    job = subprocess.run(command, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, timeout=LIMIT)
    assert (victim / "precious").read_text() == "kept" and os.listdir(victim) == ["precious"]
    assert job.returncode == 0 or "symbolic link" in job.stderr, job.stderr


def server_log(directory):
    return "".join(log.read_text(errors="replace") for log in directory.glob("**/serverlog.0"))


def test_a_link_that_is_planted_while_the_job_runs_leads_nowhere(tmp_path):
    """The names of logs to come can be foretold."""
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / "train.py").write_text(TRAIN)
    command = [find_fleetrun(), "--server_num=1", "--trainer_num=1", f"--python={sys.executable}",
               "--ps_checkpoint=kept", "--ps_checkpoint_interval=1", "train.py", "async"]
    job = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until((tmp_path / "at-10").exists, "step 10", LIMIT)
        server = tmp_path / "kept" / "server-00000"
        for number in range(1, 40):
            with contextlib.suppress(FileExistsError):
                (server / f"log-{number:016x}").symlink_to(victim)
        (tmp_path / "go-10").touch()
        wait_until(lambda: victim.read_bytes() != b"kept" or job.poll() is not None
                   or "symbolic links" in server_log(tmp_path), "a log to come", LIMIT)
        (tmp_path / "go-25").touch()
        job.wait(LIMIT)
    finally:
        job.kill()
        job.wait()
    assert victim.read_bytes() == b"kept"


def test_checkpoints_are_the_users_alone(tmp_path):
    train(tmp_path, False, 1, "async", "--ps_checkpoint=kept")
    server = tmp_path / "kept" / "server-00000"
    assert server.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in server.iterdir()} == {0o600}

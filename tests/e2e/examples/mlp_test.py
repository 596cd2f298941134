"""examples/mlp: the same model in one process, on parameter servers, and in collective training."""
import concurrent.futures
import re
import statistics

import pytest


@pytest.fixture
def folder(example):
    return example("mlp")


def costs(output):
    """The printed costs, in order."""
    return [float(cost) for cost in re.findall(r"step\d+ ?cost ?= ?(\d\.\d+)", output)]


def learned(*outputs):
    """What trainers of one job have printed."""
    every = [costs(output) for output in outputs]
    # Guessing costs ln 2 = 0.69. Who comes later finds what the others have pushed.
    assert max(found[0] for found in every) > 0.6
    for found in every:
        assert len(found) == 11, outputs
        # Single batches jump, above all where two trainers push at their own pace with a rate that is near to
        # too much: most of the later ones cost less.
        assert statistics.median(found[1:]) < 0.5


def test_one_process(folder, python):
    run = python(folder, "train_local.py")
    assert run.returncode == 0, run.stderr
    learned(run.stdout)


def test_parameter_server(folder, fleetrun):
    run = fleetrun(folder, "--server_num=1", "--trainer_num=2", "train_ps.py")
    assert run.returncode == 0, run.stdout + run.stderr
    texts = [(folder / "log" / f"workerlog.{rank}").read_text() for rank in (0, 1)]
    for rank, text in enumerate(texts):
        assert f"worker_index: {rank}, step0 cost=" in text
    learned(*texts)


def test_collective_training_with_one_trainer_is_local_training(folder, fleetrun):
    run = fleetrun(folder, "--nproc_per_node=1", "train_collective.py")
    assert run.returncode == 0, run.stdout + run.stderr
    learned((folder / "log" / "workerlog.0").read_text())


def test_collective_training_with_two_trainers(folder, fleetrun):
    run = fleetrun(folder, "--nproc_per_node=2", "train_collective.py")
    assert run.returncode == 0, run.stdout + run.stderr
    ends = []
    for rank in (0, 1):
        text = (folder / "log" / f"workerlog.{rank}").read_text()
        assert f"worker_index: {rank}, step0 cost = " in text
        learned(text)
        ends.append(re.search(r"worker_index: \d, parameters (\w+)", text)[1])
    # Each trainer has examples of its own, and both have the same parameters to the last bit.
    assert ends[0] == ends[1]


def test_collective_training_is_training_with_the_batches_of_all(folder, fleetrun, python):
    (folder / "check.py").write_text(CHECK)
    run = fleetrun(folder, "--nproc_per_node=2", "check.py")
    assert run.returncode == 0, run.stdout + run.stderr
    together = (folder / "log" / "workerlog.0").read_text()
    alone = python(folder, "check.py")
    assert alone.returncode == 0, alone.stderr
    one, other = ([float(number) for number in text.split()] for text in (together, alone.stdout))
    assert len(one) == 20 and max(abs(a - b) for a, b in zip(one, other)) < 1e-6


# Prints sums of the parameters after some steps, of two trainers with half
# of the examples each or of one with all.
CHECK = """
import numpy as np
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
from nets import mlp
from utils import gen_data

paddle.enable_static()
paddle.seed(5)
strategy = fleet.DistributedStrategy()
strategy.nccl_comm_num = 2
strategy.fuse_grad_size_in_MB = 1
fleet.init(is_collective=True, strategy=strategy)
x = paddle.static.data(name="x", shape=[None, 32], dtype="float32")
y = paddle.static.data(name="y", shape=[None, 1], dtype="int64")
cost = mlp(x, y)
fleet.distributed_optimizer(paddle.optimizer.Momentum(0.1, 0.9, weight_decay=1e-4)).minimize(cost)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
random = np.random.RandomState(7)
weight = cost.program.all_parameters()[0].name
size, rank = fleet.worker_num(), fleet.worker_index()
for _ in range(20):
    batch = gen_data(random)
    mine = {name: value[rank * 128 // size:(rank + 1) * 128 // size] for name, value in batch.items()}
    exe.run(feed=mine, fetch_list=[cost])
    values = np.asarray(paddle.static.global_scope().find_var(weight).get_tensor())
    print(repr(float(values.astype("float64").sum())))
"""


@pytest.mark.parametrize("parts", [["rank 0", "rank 1"], ["server 0", "trainer 0", "trainer 1"]])
def test_roles_that_the_script_says(folder, python, ports, parts):
    endpoints = [f"127.0.0.1:{port}" for port in ports(3)]
    with concurrent.futures.ThreadPoolExecutor(len(parts)) as threads:
        runs = list(threads.map(lambda part: python(folder, "train_roles.py", *part.split(),
                                                    f"--servers={endpoints[0]}",
                                                    f"--trainers={endpoints[1]},{endpoints[2]}"), parts))
    for part, run in zip(parts, runs):
        assert run.returncode == 0, part + run.stdout + run.stderr
        if not part.startswith("server"):
            assert f"trainer {part[-1]} of 2, step0 cost=" in run.stdout
    learned(*(run.stdout for part, run in zip(parts, runs) if not part.startswith("server")))

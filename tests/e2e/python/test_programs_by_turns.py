"""Programs that train by turns over the same servers, as one process trains them over one scope: two heads on
shared layers, one program that reads what another trains, passes over data sets.
"""

import json
import sys

import pytest

from flow import LIMIT

# PLACE: local, each (a minimize() for each program) or list (one for all).
HEAD = """
import json, os, sys
import numpy as np
import paddle
import paddle.distributed.fleet as fleet

place, mode, share = [*sys.argv[1:3], int(sys.argv[3])] if len(sys.argv) > 3 else ("each", "sync", 6)
paddle.enable_static()

def attr(name, value, trainable=True):
    return paddle.ParamAttr(name=name, initializer=paddle.nn.initializer.Constant(value), trainable=trainable)

def inputs():
    return [paddle.static.data("ids", [None, 1], "int64"), paddle.static.data("x", [None, 3]), paddle.static.data("y", [None, 1])]

def features(ids, x, trainable=True):
    rows = paddle.static.nn.embedding(ids, [10, 3], is_sparse=True, param_attr=attr("emb", 0.2, trainable))
    return paddle.static.nn.fc(x + paddle.reshape(rows, [-1, 3]), 4, activation="tanh", weight_attr=attr("shared", 0.3, trainable), bias_attr=False)

def head(h, y, name, value):
    out = paddle.static.nn.fc(h, 1, weight_attr=attr(name, value), bias_attr=False)
    return paddle.mean(paddle.square(out - y))

programs = []
def program(build):
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        feeds = inputs()
        programs.append((main, startup, build(*feeds), feeds))
"""

TWO_HEADS = HEAD + """
program(lambda ids, x, y: head(features(ids, x), y, "ha", -0.2))
program(lambda ids, x, y: head(features(ids, x), y, "hb", 0.4))
turns, optimizers = [0, 1] * 4, [lambda: paddle.optimizer.SGD(0.1)] * 2
"""

# The second program moves its own head alone, and reads what the first one moves.
READS = HEAD + """
program(lambda ids, x, y: head(features(ids, x), y, "ha", -0.2))
program(lambda ids, x, y: head(features(ids, x, False), y, "hb", 0.4))
turns, optimizers = [0, 0, 1, 1, 0, 1, 1, 0], [lambda: paddle.optimizer.Adagrad(0.1), lambda: paddle.optimizer.SGD(0.2)]
"""

TRAIN = """
fleet.init(is_collective=False)
strategy = fleet.DistributedStrategy()
strategy.a_sync = mode != "sync"
if mode == "geo": strategy.a_sync_configs = {"k_steps": 1}
if place == "list":
    losses, startups = [each[2] for each in programs], [each[1] for each in programs]
    fleet.distributed_optimizer(optimizers[0](), strategy).minimize(losses, startups)
else:
    for (main, startup, loss, _), optimizer in zip(programs, optimizers):
        made = optimizer() if place == "local" else fleet.distributed_optimizer(optimizer(), strategy)
        with paddle.static.program_guard(main, startup): made.minimize(loss)
if place != "local" and fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
exe = paddle.static.Executor(paddle.CPUPlace())
for _, startup, _, _ in programs: exe.run(startup)
if place != "local":
    scope = paddle.static.global_scope()
    fleet.init_worker([scope] * len(programs) if place == "list" else None)
rank, chance, losses = fleet.worker_index(), np.random.RandomState(0), []
def batch():
    x, ids = chance.rand(6, 3).astype("float32"), chance.randint(0, 10, (6, 1)).astype("int64")
    mine = slice(rank * share, (rank + 1) * share)
    return {"ids": ids[mine], "x": x[mine], "y": x[mine].sum(1, keepdims=True)}
"""

STEPS = """
for turn in turns:
    main, _, loss, _ = programs[turn]
    losses.append(float(exe.run(main, feed=batch(), fetch_list=[loss])[0]))
print("losses", json.dumps(losses), flush=True)
if place != "local": fleet.stop_worker()
"""

# A pass over a data set for each program, twice, and in between an evaluation with the rows of the first.
PASSES = """
for number, turn in enumerate([0, 1, 0, 1]):
    main, startup, loss, feeds = programs[turn]
    name = f"lines-{rank}-{number}"
    with open(name, "w") as file:
        for _ in range(5):
            fed = batch()
            for row in zip(*(fed[key] for key in ("ids", "x", "y"))):
                file.write(" ".join(f"{len(values)} " + " ".join(map(repr, values.tolist())) for values in row) + chr(10))
    dataset = paddle.distributed.QueueDataset()
    dataset.init(use_var=feeds, pipe_command="cat", batch_size=share, thread_num=1)
    dataset.set_filelist([name])
    exe.train_from_dataset(main, dataset)
    seen = main.clone(for_test=True)
    losses.append(float(exe.run(seen, feed=batch(), fetch_list=[loss.name])[0]))
print("losses", json.dumps(losses), flush=True)
if place != "local": fleet.stop_worker()
"""

# Of Paddle 2.6.2, in one process, and over a server in both ways and in sync and async mode.
PADDLES = [4.764605, 0.505177, 1.319800, 0.253411, 1.079394, 0.308781, 0.404672, 0.073496]


@pytest.fixture
def losses(tmp_path, start):
    """losses(CODE, PLACE, MODE, SERVERS, TRAINERS): of each step, the mean over the trainers."""

    def train(code, place, mode="sync", servers=0, trainers=1):
        from fleetrun_job import find_fleetrun

        (tmp_path / "train.py").write_text(code)
        many = [f"--server_num={servers}", f"--trainer_num={trainers}"] if servers else ["--nproc_per_node=1"]
        job = start([find_fleetrun(), "--compat=paddle", "--log_dir=log", *many, "--python", sys.executable,
                     "train.py", place, mode, 6 // trainers])
        output, _ = job.communicate(timeout=LIMIT)
        assert job.returncode == 0, output
        logs = [path.read_text() for path in sorted((tmp_path / "log").glob("workerlog.*"))]
        lines = [line for log in logs for line in log.splitlines() if line.startswith("losses ")]
        made = [json.loads(line[7:]) for line in lines]
        assert len(made) == trainers, (output, logs)
        return [sum(step) / trainers for step in zip(*made)]

    return train


@pytest.mark.parametrize("place, mode", [
    ("local", "sync"), ("list", "sync"), ("list", "async"), ("each", "sync"), ("each", "async"),
    ("each", "geo"),
])  # fmt: skip
def test_losses_are_paddles(losses, place, mode):
    servers = 0 if place == "local" else 2
    assert losses(TWO_HEADS + TRAIN + STEPS, place, mode, servers) == pytest.approx(PADDLES, rel=0, abs=1e-5)


def test_the_scope_has_what_the_last_step_of_each_program_made(losses):
    # Both heads are looked at after steps of both programs, and after the last one.
    look = STEPS.replace("losses.append(", "exe.run(programs[1][0], feed=batch()), losses.append(").replace(
        'print("losses"', """for name in ("ha", "hb", "shared"):
    losses.append(float(np.array(paddle.static.global_scope().find_var(name).get_tensor()).sum()))
print("losses\"""")
    code = TWO_HEADS.replace("[0, 1] * 4", "[0] * 3") + TRAIN + look
    assert losses(code, "list", "sync", 1) == pytest.approx(losses(code, "local"), rel=0, abs=1e-5)


@pytest.mark.parametrize("code", [TWO_HEADS, READS], ids=["two heads", "reads"])
def test_two_trainers_in_sync_mode_are_one_with_the_whole_batch(losses, code):
    alone = losses(code + TRAIN + STEPS, "local")
    assert losses(code + TRAIN + STEPS, "each", "sync", 2, 2) == pytest.approx(alone, rel=0, abs=1e-5)


@pytest.mark.parametrize("code", [TWO_HEADS, READS], ids=["two heads", "reads"])
def test_passes_over_data_sets_by_turns(losses, code):
    alone = losses(code + TRAIN + PASSES, "local")
    assert losses(code + TRAIN + PASSES, "each", "sync", 1, 2) == pytest.approx(alone, rel=0, abs=1e-4)


def test_a_parameter_has_one_rule(run, package):
    done = run(TWO_HEADS + """
fleet.init(fleet.UserDefinedRoleMaker(current_id=0, role=fleet.Role.WORKER, worker_num=1, server_endpoints=["127.0.0.1:1"]))
for (main, startup, loss, _), made in zip(programs, (paddle.optimizer.SGD(0.1), paddle.optimizer.Adam(0.1))):
    with paddle.static.program_guard(main, startup): fleet.distributed_optimizer(made).minimize(loss)
main, startup, loss, _ = programs[0]
exe = paddle.static.Executor()
exe.run(startup)
try:
    exe.run(main, feed={"ids": np.zeros((1, 1), "int64"), "x": np.ones((1, 3), "float32"), "y": np.ones((1, 1), "float32")})
except Exception as error:
    print(error)
""", PYTHONPATH=f"{package}/_compat")
    assert "not on the servers: two programs train 'emb' differently: " in done.stdout, done

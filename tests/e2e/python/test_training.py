"""Training in one process: steps against numpy written by hand,
the flow of document 002, sparse tables, datasets."""

import json
import re

import pytest

HEAD = """
import numpy as np
import fleetrun as paddle
import fleetrun.nn.functional as F
paddle.enable_static()
paddle.seed(7)
rng = np.random.default_rng(0)
exe = paddle.static.Executor(paddle.CPUPlace())
scope = paddle.static.global_scope()
value = lambda name: np.array(scope.find_var(name).get_tensor())
"""

# One hidden layer, log loss, and the gradients of its four parameters, by hand.
NET = """
x = paddle.static.data("x", [None, 5])
y = paddle.static.data("y", [None, 1])
hidden = F.tanh(paddle.nn.Linear(5, 4)(x))
logit = paddle.nn.Linear(4, 1)(hidden)
loss = F.binary_cross_entropy_with_logits(logit, y)
NAMES = ["linear_0.w_0", "linear_0.b_0", "linear_2.w_0", "linear_2.b_0"]
def numpy_step(w, X, Y):
    h = np.tanh(X @ w[0] + w[1])
    z = h @ w[2] + w[3]
    loss = np.mean(np.maximum(z, 0) - z * Y + np.log1p(np.exp(-abs(z))))
    dz = (1 / (1 + np.exp(-z)) - Y) / len(X)
    dh = dz @ w[2].T * (1 - h * h)
    return loss, [X.T @ dh, dh.sum(0), h.T @ dz, dz.sum(0)]
def compare(optimizer, update, steps=5):
    optimizer.minimize(loss)
    exe.run(paddle.static.default_startup_program())
    w = [value(name).astype("float64") for name in NAMES]
    for step in range(1, steps + 1):
        X = rng.normal(size=(16, 5)).astype("float32")
        Y = rng.integers(0, 2, (16, 1)).astype("float32")
        got = exe.run(feed={"x": X, "y": Y}, fetch_list=[loss])[0]
        expected, gradients = numpy_step(w, X, Y)
        np.testing.assert_allclose(got, [expected], rtol=1e-5)
        w = [update(index, parameter, gradient, step) for index, (parameter, gradient) in enumerate(zip(w, gradients))]
        for name, parameter in zip(NAMES, w):
            np.testing.assert_allclose(value(name), parameter, rtol=2e-4, atol=2e-6, err_msg=f"{name}, step {step}")
state = [[0.0, 0.0] for _ in range(4)]
"""

SGD = """
compare(paddle.optimizer.SGD(learning_rate=0.3), lambda i, w, g, t: w - 0.3 * g)
"""
DECAY = """
compare(paddle.optimizer.SGD(learning_rate=0.3, weight_decay=paddle.regularizer.L2Decay(0.1)),
        lambda i, w, g, t: w - 0.3 * (g + 0.1 * w))
"""
ADAGRAD = """
def update(i, w, g, t):
    state[i][0] = state[i][0] + g * g
    return w - 0.1 * g / (np.sqrt(0.5 + state[i][0]) + 1e-6)
compare(paddle.optimizer.Adagrad(0.1, initial_accumulator_value=0.5), update)
"""
ADAM = """
def update(i, w, g, t):
    state[i][0] = 0.8 * state[i][0] + 0.2 * g
    state[i][1] = 0.95 * state[i][1] + 0.05 * g * g
    return w - 0.02 * (state[i][0] / (1 - 0.8**t)) / (np.sqrt(state[i][1] / (1 - 0.95**t)) + 1e-8)
compare(paddle.optimizer.Adam(0.02, beta1=0.8, beta2=0.95), update)
"""


@pytest.mark.parametrize("optimizer", [SGD, DECAY, ADAGRAD, ADAM], ids=["sgd", "decay", "adagrad", "adam"])
def test_steps_are_those_of_numpy(run, optimizer):
    run(HEAD + NET + optimizer)


def test_a_parameter_may_have_a_decay_of_its_own(run):
    run(HEAD + NET.replace("paddle.nn.Linear(4, 1)", "paddle.nn.Linear(4, 1, weight_attr=paddle.ParamAttr("
                           "regularizer=paddle.regularizer.L2Decay(0.5)))") + """
compare(paddle.optimizer.SGD(0.3), lambda i, w, g, t: w - 0.3 * (g + (0.5 * w if i == 2 else 0)))
""")


def test_fleet_alone_trains_as_without_fleet(run):
    run(HEAD + NET + """
import fleetrun.distributed.fleet as fleet
fleet.init(is_collective=True)
assert fleet.worker_num() == 1 and not fleet.is_server()
compare(fleet.distributed_optimizer(paddle.optimizer.SGD(0.3), fleet.DistributedStrategy()),
        lambda i, w, g, t: w - 0.3 * g)
fleet.init_worker()
assert fleet.util.all_reduce(np.array([1.5, 2.0])).tolist() == [1.5, 2.0] and fleet.util.all_gather(3) == [3]
assert fleet.util.all_reduce([3, 4], "sum", "all") == [3, 4]
fleet.barrier_worker()
fleet.stop_worker()
""")


def test_document_002_trains_and_prints(run):
    done = run("""
import fleetrun as paddle
import numpy as np
def mlp(input_x, input_y, hid_dim=128, label_dim=2):
    fc_1 = paddle.static.nn.fc(x=input_x, size=hid_dim, activation='tanh')
    fc_2 = paddle.static.nn.fc(x=fc_1, size=hid_dim, activation='tanh')
    prediction = paddle.static.nn.fc(x=[fc_2], size=label_dim, activation='softmax')
    cost = paddle.nn.functional.cross_entropy(input=prediction, label=input_y, use_softmax=False, reduction='none')
    return paddle.mean(x=cost)
np.random.seed(1)
weights = np.random.normal(size=(32, 1))
def gen_data():
    x = np.random.random(size=(128, 32)).astype('float32')
    return {"x": x, "y": ((x - 0.5) @ weights > 0).astype('int64')}
input_x = paddle.static.data(name="x", shape=[None, 32], dtype='float32')
input_y = paddle.static.data(name="y", shape=[None, 1], dtype='int64')
cost = mlp(input_x, input_y)
optimizer = paddle.optimizer.SGD(learning_rate=0.1)
optimizer.minimize(cost)
place = paddle.CUDAPlace(0)
exe = paddle.static.Executor(place)
exe.run(paddle.static.default_startup_program())
for i in range(201):
    cost_val = exe.run(feed=gen_data(), fetch_list=[cost.name])
    if i % 100 == 0:
        print("step%d cost=%f" % (i, cost_val[0]))
""")
    lines = done.stdout.splitlines()
    costs = [float(line.split("cost=")[1]) for line in lines]
    assert [line.split(" ")[0] for line in lines] == ["step0", "step100", "step200"]
    assert costs[0] > 0.5 and costs[2] < 0.45 and costs[2] < costs[0] - 0.2
    assert done.stderr == "fleetrun: warning: paddle.CUDAPlace(0): fleetrun's engine runs on the CPU\n"


def test_rows_of_a_sparse_table_learn_as_numpy_says(run):
    run(HEAD + """
ids = paddle.static.data("ids", [None, 1], "int64")
y = paddle.static.data("y", [None, 1])
rows = paddle.static.nn.sparse_embedding(ids, [10, 3], param_attr=paddle.ParamAttr(
    name="table", initializer=paddle.nn.initializer.Constant(0.5)))
assert rows.shape == (-1, 3)
loss = paddle.mean(F.square_error_cost(paddle.sum(rows, axis=1, keepdim=True), y))
test = paddle.static.default_main_program().clone(for_test=True)
paddle.optimizer.SGD(0.1).minimize(loss)
exe.run(paddle.static.default_startup_program())
table = {}
row = lambda key: table.setdefault(int(key), np.full(3, 0.5))
for step in range(4):
    K = rng.integers(-2, 2**62, (3, 1))[rng.integers(0, 3, 6)]
    Y = rng.normal(size=(6, 1)).astype("float32")
    error = np.array([[row(key).sum()] for key in K[:, 0]]) - Y
    for program in (test, None):
        got = exe.run(program, feed={"ids": K, "y": Y}, fetch_list=[loss])[0]
        np.testing.assert_allclose(got, [(error ** 2).mean()], rtol=1e-5)
    for key, e in zip(K[:, 0], error[:, 0]):
        table[int(key)] = row(key) - 0.1 * 2 * e / 6
""")


DATASET = """
import os
x = paddle.static.data("x", [None, 2])
ids = paddle.static.data("ids", [None, 1], "int64", lod_level=1)
label = paddle.static.data("label", [None, 1], "int64")
pooled = paddle.static.nn.sequence_pool(paddle.static.nn.sparse_embedding(ids, [10, 3]), "sum")
logit = paddle.nn.Linear(5, 1)(paddle.concat([x, pooled], axis=1))
prediction = F.sigmoid(logit)
loss = paddle.mean(F.log_loss(prediction, paddle.cast(label, "float32")))
auc, _, _ = paddle.static.auc(paddle.concat([1 - prediction, prediction], axis=1), label)
paddle.optimizer.Adam(0.05).minimize(loss)
files = []
for part in range(3):
    lines = []
    for line in range(200):
        a, b = rng.normal(size=2)
        keys = rng.integers(0, 50, rng.integers(1, 4))
        target = int(a - b + (keys % 2 * 2 - 1).sum() > 0)
        lines.append(f"2 {a:.4f} {b:.4f} {len(keys)} {' '.join(map(str, keys))} 1 {target}")
    files.append(f"part{part}")
    open(files[-1], "w").write("\\n".join(lines) + "\\n")
dataset = paddle.distributed.QueueDataset()
dataset.init(use_var=[x, ids, label], pipe_command="cat", batch_size=50, thread_num=2)
dataset.set_filelist(files)
"""


def test_a_pass_over_a_dataset_trains_prints_and_reports(run):
    done = run(HEAD + DATASET + """
exe.run(paddle.static.default_startup_program())
for epoch in range(8):
    assert exe.train_from_dataset(paddle.static.default_main_program(), dataset, scope, debug=False,
                                  fetch_list=[loss, auc], fetch_info=["loss", "auc"], print_period=2, thread=1) is None
before = value("linear_0.w_0")
exe.infer_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[loss], print_period=0)
assert (value("linear_0.w_0") == before).all()
print(exe.last_pass.examples, exe.last_pass.batches, len(exe.last_pass.fetch_means), exe.last_pass.fetch_means[0] < 0.25)
""")
    lines = done.stdout.splitlines()
    period = (r"time: \[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\], batch: \[\d+\], loss\[1\]:\[[\d.e-]+\], "
              r"auc\[1\]:\[[\d.e-]+\]")
    assert sum(bool(re.fullmatch(period, line)) for line in lines) == 8 * 6, lines[:12]
    ends = [line for line in lines if line.startswith("examples: ")]
    assert len(ends) == 9
    assert re.fullmatch(r"examples: 600, batches: 12, seconds: \d+\.\d{3}, examples/s: \d+\.\d", ends[0])
    stages = r"read \d+ %, pull \d+ %, compute \d+ %, push \d+ % of the threads' time; .+"
    assert sum(bool(re.fullmatch(r"bound by \w+: " + stages, line)) for line in lines) == 9
    assert lines[-1] == "600 12 1 True"
    areas = [float(line.split("auc[1]:[")[1].strip("]")) for line in lines if line.startswith("time")]
    assert areas[0] < 0.7 and areas[-1] > 0.9


@pytest.mark.parametrize("break_it, told", [
    ("open('part1', 'a').write('2 1 1 0 1 1\\n')", ["part1:201", "ids"]),
    ("dataset.set_pipe_command('head -n 20; echo nothing left >&2; exit 3')",
     ["exited with 3", "nothing left"]),
    ("dataset.set_filelist(files + ['nowhere', 'never'])", ["nowhere", "never"]),
    ("dataset.set_filelist([])", ["file"]),
    ("dataset.set_use_var([x, label])", ["'ids'"]),
])
def test_bad_data_fails_the_script(run, break_it, told):
    done = run(HEAD + DATASET + """
exe.run(paddle.static.default_startup_program())
""" + break_it + """
exe.train_from_dataset(paddle.static.default_main_program(), dataset)
print("went on")
""", expect=1)
    assert "went on" not in done.stdout
    assert "fleetrun.Error: " in done.stderr
    for word in told:
        assert word in done.stderr


@pytest.mark.parametrize("code, what", [
    ("exe.train_from_dataset()", "Executor.train_from_dataset: no dataset is given"),
    ("exe.train_from_dataset(dataset=dataset, fetch_list=[loss], fetch_info=['a', 'b'])",
     "1 in fetch_list and 2 in fetch_info"),
    ("exe.train_from_dataset(dataset=dataset, fetch_handler=print)", "train_from_dataset(fetch_handler="),
    ("dataset.init(batch_size=0)", "QueueDataset: batch_size=0"),
    ("paddle.distributed.QueueDataset().native()", "the dataset has no variables"),
])
def test_what_training_cannot_do_is_named(run, code, what):
    done = run(HEAD + DATASET + """
try:
    """ + code + """
except paddle.Error as error:
    print(error)
""")
    assert what in done.stdout


def test_a_model_is_saved_and_comes_back(run):
    code = HEAD + DATASET + """
import fleetrun.distributed.fleet as fleet
fleet.init()
fleet.distributed_optimizer(paddle.optimizer.Adam(0.05)).minimize(loss)
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
"""
    code = code.replace("paddle.optimizer.Adam(0.05).minimize(loss)\nfiles", "files")
    trained = run(code + """
for epoch in range(3):
    exe.train_from_dataset(paddle.static.default_main_program(), dataset, print_period=0)
fleet.save_persistables(exe, "model")
exe.infer_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[loss], print_period=0)
print(exe.last_pass.fetch_means)
""")
    loaded = run(code + """
fleet.load_model("model", mode=0)
exe.infer_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[loss], print_period=0)
print(exe.last_pass.fetch_means)
try:
    fleet.load_model("nowhere")
except paddle.Error as error:
    print(error)
""")
    expected = float(trained.stdout.splitlines()[-1].strip("[]"))
    got, missing = loaded.stdout.splitlines()[-3], loaded.stdout.splitlines()[-2]
    assert abs(float(got.strip("[]")) - expected) < 1e-6
    assert missing.startswith("nowhere/persistables.npz cannot be read")


def test_debug_prints_a_table_of_operators_and_a_folder_gets_timelines(run, tmp_path):
    done = run(f"""
import os
os.environ["FLEETRUN_TRACE"] = {str(tmp_path / "traces")!r}
""" + HEAD + DATASET + """
exe.run(paddle.static.default_startup_program())
for debug in (True, False):
    exe.train_from_dataset(paddle.static.default_main_program(), dataset, debug=debug, fetch_list=[loss], print_period=0)
""")
    tables = [line for line in done.stdout.splitlines()
              if re.fullmatch(r"operator +calls  milliseconds   share", line)]
    assert len(tables) == 1
    assert re.search(r"^mean +12 +\d+\.\d{3} +\d+\.\d %$", done.stdout, re.M)
    for number in (1, 2):
        with open(tmp_path / "traces" / f"trainer-0.pass-{number}.json") as file:
            names = [event["name"] for event in json.load(file)["traceEvents"]]
        assert names.count("mean") == names.count("compute") == 12


def test_a_nan_stops_a_pass_that_looks_for_it(run):
    done = run("""
import os
os.environ["FLAGS_check_nan_inf"] = "1"
""" + HEAD + DATASET + """
exe.run(paddle.static.default_startup_program())
scope.find_var("linear_0.w_0").get_tensor().set(value("linear_0.w_0") * float("nan"), paddle.CPUPlace())
try:
    exe.train_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[loss], print_period=0)
except paddle.Error as error:
    print("stopped:", error)
""")
    assert re.search(r"stopped: .*linear made NaN in '.+', in batch 1 of thread [01]", done.stdout)


def test_a_program_is_drawn_for_graphviz(run):
    done = run(HEAD + NET + """
paddle.optimizer.SGD(0.1).minimize(loss)
print(paddle.static.default_main_program().to_dot())
""")
    assert (done.stdout.startswith("digraph program {") and 'label="linear_grad", fillcolor=lightyellow' in
            done.stdout)

"""Saving and loading programs and models, metrics over trainers, and what is refused of it."""

import pytest

HEAD = """
import os
import numpy as np
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
paddle.enable_static()
paddle.seed(3)
fleet.init(is_collective=True)
exe = paddle.static.Executor(paddle.CPUPlace())
scope = paddle.static.global_scope()
value = lambda name: np.array(scope.find_var(name).get_tensor())
def net(rows):
    global x, y, out, loss
    x = paddle.static.data("x", [None, 3])
    y = paddle.static.data("y", [None, 1])
    features = x
    if rows:
        ids = paddle.static.data("ids", [None, 1], "int64")
        features = paddle.concat([x, paddle.static.nn.sparse_embedding(ids, [10, 2], param_attr=paddle.ParamAttr(name="rows"))], axis=1)
    out = paddle.nn.functional.sigmoid(paddle.nn.Linear(3 + 2 * rows, 1)(paddle.nn.Dropout(0.5)(features)))
    loss = paddle.mean(paddle.square(out - y))
    fleet.distributed_optimizer(paddle.optimizer.Adam(0.1)).minimize(loss)
    exe.run(paddle.static.default_startup_program())
def feed(rows=False, n=4):
    fed = {"x": np.arange(3 * n, dtype="float32").reshape(n, 3) / 7, "y": np.ones((n, 1), dtype="float32")}
    return {**fed, "ids": np.arange(n).reshape(n, 1)} if rows else fed
"""


def test_a_program_and_its_state_come_back(run):
    run(HEAD + """
net(False)
main = paddle.static.default_main_program()
for _ in range(3):
    exe.run(feed=feed())
paddle.static.save(main, "kept/model")
assert sorted(os.listdir("kept")) == ["model.pdmodel", "model.pdopt", "model.pdparams"]
before = {name: value(name) for name in scope.local_var_names()}
exe.run(feed=feed())
assert not np.allclose(value("linear_0.w_0"), before["linear_0.w_0"])
paddle.static.load(main, "kept/model", exe)
for name, kept in before.items():
    if main.has_var(name):
        np.testing.assert_array_equal(value(name), kept, err_msg=name)
state = paddle.static.load_program_state("kept/model")
state["linear_0.w_0"] = np.zeros((3, 1), dtype="float32")
paddle.static.set_program_state(main, state)
assert not value("linear_0.w_0").any()
# Paddle writes the same: a pickle of a dict of arrays.
import pickle
assert sorted(pickle.load(open("kept/model.pdparams", "rb"))) == ["linear_0.b_0", "linear_0.w_0"]
""")


def test_an_inference_model_computes_without_its_script(run):
    done = run(HEAD + """
net(False)
exe.run(feed=feed())
test = paddle.static.default_main_program().clone(for_test=True)
expected = exe.run(test, feed=feed(), fetch_list=[out])[0]
paddle.static.save_inference_model("served/net", [x], [out], exe)
np.save("expected.npy", expected)
paddle.static.save_inference_model("served/loss", [x], [loss], exe)
program, names, fetches = paddle.static.load_inference_model("served/loss", exe)
assert names == ["x"] and exe.run(program, feed=feed(), fetch_list=fetches)[0] > 0
""")
    assert "the inference model reads y, which is not among its inputs ['x']" in done.stderr
    run("""
import numpy as np
import fleetrun as paddle
paddle.enable_static()
exe = paddle.static.Executor()
program, feeds, fetches = paddle.static.load_inference_model("served/net", exe)
assert feeds == ["x"] and [fetch.name for fetch in fetches] == ["sigmoid_0.tmp_0"], fetches
got = exe.run(program, feed={"x": np.arange(12, dtype="float32").reshape(4, 3) / 7}, fetch_list=fetches)[0]
np.testing.assert_array_equal(got, np.load("expected.npy"))
""")


def test_what_computes_a_variable_that_is_fed_is_left_out(run):
    run(HEAD + """
x = paddle.static.data("x", [None, 3])
hidden = paddle.static.nn.fc(x, 4, activation="relu")
fed_twice = paddle.static.nn.fc(hidden, 2) + paddle.mean(hidden)
exe.run(paddle.static.default_startup_program())
values, expected = exe.run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=[hidden, fed_twice])
paddle.static.save_inference_model("served/net", [hidden], [fed_twice], exe)
with paddle.static.scope_guard(paddle.static.Scope()):
    program, feeds, fetches = paddle.static.load_inference_model("served/net", exe)
    assert feeds == [hidden.name]
    assert {one.name for one in program.list_vars() if one.persistable} == {"fc_1.w_0", "fc_1.b_0"}
    assert np.array_equal(exe.run(program, feed={feeds[0]: values}, fetch_list=fetches)[0], expected)
""")


def test_fleet_saves_an_inference_model_with_its_rows(run):
    run(HEAD + """
net(True)
for _ in range(3):
    exe.run(feed=feed(True))
test = paddle.static.default_main_program().clone(for_test=True)
look = lambda: exe.run(test, feed=feed(True), fetch_list=[out])[0]
expected = look()
fleet.save_inference_model(exe, "served", ["x", "ids"], [out])
assert sorted(os.listdir("served")) == ["dnn_plugin", "model.pdiparams", "model.pdmodel", "tables"]
fleet.save_dense_params(exe, "dense", scope, paddle.static.default_main_program())
weights = value("linear_0.w_0")
for _ in range(3):
    exe.run(feed=feed(True))
assert not np.allclose(look(), expected)
fleet.load_inference_model("served")
paddle.static.io.load_vars(exe, "dense", filename="dense.pdparams")
np.testing.assert_array_equal(value("linear_0.w_0"), weights)
np.testing.assert_array_equal(look(), expected)
""")


def test_metrics_of_one_trainer_are_its_own(run):
    run(HEAD + """
from fleetrun.distributed.fleet import metrics
score = paddle.static.data("score", [None, 2])
label = paddle.static.data("label", [None, 1], "int64")
auc, _, stats = paddle.static.auc(score, label)
exe.run(paddle.static.default_startup_program())
rng = np.random.default_rng(0)
p = rng.random((500, 1)).astype("float32")
fed = {"score": np.hstack([1 - p, p]), "label": (rng.random((500, 1)) < p).astype("int64")}
got = exe.run(feed=fed, fetch_list=[auc])[0]
assert abs(metrics.auc(stats[2], stats[3]) - float(got)) < 1e-9
assert metrics.sum(stats[2]).sum() == fed["label"].sum()
assert metrics.max(np.array([1, 5])).tolist() == [1, 5] and metrics.min(np.array([3])).tolist() == [3]
assert metrics.acc(np.array([3.0]), np.array([4.0])) == 0.75
assert metrics.mae(np.array([3.0]), np.array([4.0])) == 0.75 and metrics.rmse(np.array([9.0]), np.array([4.0])) == 1.5
assert metrics.auc(np.zeros(5), np.ones(5)) == 0.5
assert fleet._role_maker._all_reduce([1.0, 2.0]) == fleet.fleet._role_maker._all_reduce([1.0, 2.0]) == [1.0, 2.0]
assert fleet.all_reduce(3, "max") == 3
""")


@pytest.mark.parametrize("code, told", [
    ("paddle.static.save(paddle.static.default_main_program(), 'm', protocol=7)",
     "paddle.static.save(protocol=7)"),
    ("paddle.static.load(paddle.static.default_main_program(), 'nowhere')",
     "nowhere.pdparams cannot be read"),
    ("open('m.pdparams', 'wb').write(b'cos\\nsystem\\n(S\\'true\\'\\ntR.'); "
     "paddle.static.load(paddle.static.default_main_program(), 'm')",
     "m.pdparams holds no arrays: os.system is not an array"),
    ("open('m.pdparams', 'wb').write(b'\\x80\\x04'); "
     "paddle.static.load(paddle.static.default_main_program(), 'm')",
     "m.pdparams holds no arrays"),
    ("open('m.pdmodel', 'wb').write(b'\\n\\x07'); paddle.static.load_inference_model('m', exe)",
     "m.pdmodel is a program neither of fleetrun nor of Paddle"),
    ("ids = paddle.static.data('ids', [None, 1], 'int64'); "
     "paddle.static.save_inference_model('m', ['ids'], [paddle.static.nn.sparse_embedding(ids, [9,2])], exe)",
     "the rows of a sparse_embedding are in tables"),
    ("net(False); paddle.static.set_program_state(paddle.static.default_main_program(), "
     "{'linear_0.w_0': np.zeros((2, 2))})",
     "linear_0.w_0 has the shape [2, 2] there, [3, 1] in the program"),
    ("paddle.static.Program.parse_from_string(b'\\n\\x07')",
     "what is given is a program neither of fleetrun nor of Paddle"),
    ("net(True); fleet.load_one_table(0, 'there', 0)", "fleet.load_one_table: a save is loaded whole"),
    ("net(True); fleet.save_dense_params(exe, 'there', scope, "
     "paddle.static.default_main_program(), ['rows'])",
     "rows is not a dense parameter of the program"),
    ("fleet.metrics.sum('nothing')", "nothing has no value in the scope"),
])
def test_what_cannot_be_kept_is_named(run, code, told):
    done = run(HEAD + f"""
try:
    {code}
except paddle.Error as error:
    print(error)
""")
    assert told in done.stdout, done.stdout


def test_a_model_of_rows_alone_is_saved_to_serve(run):
    run(HEAD + """
ids = paddle.static.data("ids", [None, 1], "int64")
out = paddle.sum(paddle.static.nn.sparse_embedding(ids, [10, 2], param_attr=paddle.ParamAttr(name="rows")), axis=1)
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1)).minimize(paddle.mean(out))
exe.run(paddle.static.default_startup_program())
exe.run(feed={"ids": np.array([[1], [2]])}, fetch_list=[out])
fleet.save_inference_model(exe, "served", ["ids"], [out])
assert sorted(os.listdir("served")) == ["dnn_plugin", "model.pdiparams", "model.pdmodel", "tables"]
""")


def test_what_paddle_saves_for_its_own_services_is_saved_whole(run):
    done = run(HEAD + """
import os
net(True)
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
exe.run(feed=feed(True), fetch_list=[loss])
rows = fleet.fleet.training.client.rows(0)
print(fleet.shrink(), fleet.save_cache_model("cache"), fleet.save_cache_table(0, 3))
fleet.save_one_table(0, "one", 0)
fleet.save_persistables(exe, "patch", mode=5)
value = exe.run(paddle.static.default_main_program().clone(for_test=True), feed=feed(True), fetch_list=[out])[0]
for directory in ("cache", "one", "patch"):
    for times in range(3):
        exe.run(feed=feed(True))
    fleet.load_model(directory)
    again = exe.run(paddle.static.default_main_program().clone(for_test=True), feed=feed(True), fetch_list=[out])[0]
    print(np.array_equal(value, again), fleet.fleet.training.client.rows(0) == rows)
fleet.fleet.save(dirname="kept")
fleet.load_model("kept")
fleet.fleet.save(dirname="served", feed=[x, "ids"], fetch=[out])
with open("served/dnn_plugin/__model__", "rb") as file:
    program = paddle.static.Program.parse_from_string(file.read())
print(str(program) == str(paddle.static.load_inference_model("served/model", exe)[0]))
""")
    assert done.stdout.splitlines() == ["0 -1 None", *["True True"] * 3, "True"]
    assert [line.partition(" has no ")[0].partition(" saves what ")[0].partition(": the save")[0]
            for line in done.stderr.splitlines()] == [
        "fleetrun: warning: fleet.shrink",
        "fleetrun: warning: fleet.save_cache_model",
        "fleetrun: warning: fleet.save_cache_table",
        "fleetrun: warning: fleet.save_one_table(0)",
        "fleetrun: warning: fleet.save_persistables(mode=5) takes all rows, as mode 0 does",
    ]


def test_a_process_alone_saves_with_fleet_what_its_own_optimizer_trains(run):
    run(HEAD.replace("fleet.init(is_collective=True)", "fleet.init()") + """
x = paddle.static.data("x", [None, 3])
out = paddle.static.nn.fc(x, 1)
try:
    fleet.save_persistables(exe, "early")
except paddle.Error as error:
    assert "before an optimizer's minimize" in str(error)
paddle.optimizer.Adam(0.1).minimize(paddle.mean(paddle.square(out - 1)))
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
feed = {"x": np.ones((2, 3), "float32")}
exe.run(feed=feed)
fleet.save_inference_model(exe, "served", ["x"], [out])
fleet.save_persistables(exe, "kept")
test = paddle.static.default_main_program().clone(for_test=True)
expected = exe.run(test, feed=feed, fetch_list=[out])[0]
exe.run(feed=feed)
fleet.load_model("kept")
np.testing.assert_array_equal(exe.run(test, feed=feed, fetch_list=[out])[0], expected)
fleet.stop_worker()
program, _, fetches = paddle.static.load_inference_model("served/model", exe)
np.testing.assert_array_equal(exe.run(program, feed=feed, fetch_list=fetches)[0], expected)
""")

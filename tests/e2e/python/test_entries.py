"""Entries and accessors at work, with the tables in this process:
who gets a row, what it counts, how it learns."""

import pytest

HEAD = """
import numpy as np
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
from fleetrun.distributed import CountFilterEntry, ProbabilityEntry, ShowClickEntry
paddle.enable_static()
paddle.seed(7)
fleet.init(is_collective=True)
strategy = fleet.DistributedStrategy()
exe = paddle.static.Executor(paddle.CPUPlace())
ids = paddle.static.data("ids", [None, 1], "int64")
show = paddle.static.data("show", [None, 1], "int64")
click = paddle.static.data("click", [None, 1], "int64")
def train(width=2, optimizer=None, size=1, **arguments):
    global loss, training, table, rows
    attr = paddle.ParamAttr(name="rows", initializer=paddle.nn.initializer.Constant(0.5))
    rows = paddle.static.nn.sparse_embedding(ids, [10, width], param_attr=attr, **arguments)
    loss = paddle.sum(rows)
    fleet.distributed_optimizer(optimizer or paddle.optimizer.SGD(0.25), strategy).minimize(loss)
    exe.run(paddle.static.default_startup_program())
    training = loss.program.training
    table = training.plan.entries()[0].table
def step(keys, shows=None, clicks=None, fetch=None):
    column = lambda values: np.array(values, dtype="int64").reshape(-1, 1)
    feed = {"ids": column(keys)}
    if shows is not None:
        feed |= {"show": column(shows), "click": column(clicks)}
    return exe.run(feed=feed, fetch_list=[rows if fetch is None else fetch])[0]
"""


@pytest.mark.parametrize("bloom", [False, True])
def test_a_key_gets_its_row_with_the_push_that_completes_its_count(run, bloom):
    run(HEAD + f"""
train(entry=CountFilterEntry(3, bloom={bloom}))
assert step([5, 5, 8]).tolist() == [[0.5, 0.5]] * 3      # one push counts a key once, however often it is in it
assert training.client.rows(table.id) == 0
step([5]); step([5])
assert training.client.rows(table.id) == 1               # 5 was pushed three times, 8 once
assert step([5, 8]).tolist() == [[0.25, 0.25], [0.5, 0.5]]
""")


def test_a_probability_admits_the_same_share_of_keys_each_time(run):
    run(HEAD + """
train(entry=ProbabilityEntry(0.25))
step(range(4000)); step(range(4000))
admitted = training.client.rows(table.id)
assert 900 < admitted < 1100, admitted
moved = step(range(4000))[:, 0] != 0.5
assert moved.sum() == admitted
""")


def test_rows_count_shows_and_clicks_and_give_them_to_the_program(run):
    run(HEAD + """
strategy.sparse_table_configs = {"rows": {
    "table_parameters.rows.accessor.accessor_class": "CtrCommonAccessor",
    "table_parameters.rows.accessor.ctr_accessor_param.zero_init": False}}
train(width=4, entry=ShowClickEntry("show", "click"))
first = step([1, 1, 2], [1, 3, 1], [1, 0, 0])
assert first.tolist() == [[0, 0, 0.5, 0.5]] * 3, first
second = step([1, 1, 2], [1, 3, 1], [1, 0, 0])
assert second[0, :2].tolist() == [4, 1] and second[2, :2].tolist() == [1, 0], second
assert np.allclose(second[:, 2:], [[0.0, 0.0], [0.0, 0.0], [0.25, 0.25]]), second
""")


def test_without_an_entry_a_looked_up_key_is_one_show(run):
    run(HEAD + """
strategy.sparse_table_configs = {"rows": {"table_parameters.rows.accessor.accessor_class": "CtrCommonAccessor"}}
train(width=4)
step([1, 1, 2])
assert step([1, 2])[:, :2].tolist() == [[2, 0], [1, 0]]
""")


def test_columns_come_when_the_score_reaches_the_threshold(run):
    run(HEAD + """
strategy.sparse_table_configs = {"rows": {"table_parameters.rows.accessor.embedx_threshold": 2.0}}
train(width=3, entry=ShowClickEntry("show", "click"))
assert step([1], [1], [1]).tolist() == [[0.5, 0.0, 0.0]]
assert step([1], [1], [1]).tolist() == [[0.25, 0.0, 0.0]]   # this push brings the score to 2
assert step([1], [1], [1]).tolist() == [[0.0, 0.5, 0.5]]
assert step([1], [1], [1]).tolist() == [[-0.25, 0.25, 0.25]]
""")


def test_paddles_own_rule_takes_an_examples_gradient_by_its_shows(run):
    # loss = sum / batch size: the gradient of a row's column is 1/3, times 3 examples, by 1 show: 1.
    run(HEAD + """
strategy.sparse_table_configs = {"rows": {
    "table_parameters.rows.accessor.embed_sgd_param.name": "SparseAdaGradSGDRule",
    "table_parameters.rows.accessor.embed_sgd_param.adagrad.learning_rate": 0.1,
    "table_parameters.rows.accessor.embedx_sgd_param.name": "SparseAdaGradSGDRule",
    "table_parameters.rows.accessor.embedx_sgd_param.adagrad.learning_rate": 0.1}}
attr = paddle.ParamAttr(name="rows", initializer=paddle.nn.initializer.Constant(0.5))
rows = paddle.static.nn.sparse_embedding(ids, [10, 2], param_attr=attr)
loss = paddle.scale(paddle.sum(rows), 1 / 3)
fleet.distributed_optimizer(paddle.optimizer.SGD(5.0), strategy).minimize(loss)
exe.run(paddle.static.default_startup_program())
step([1, 2, 3])
w, g2sum = 0.5 - 0.1, 1.0                                   # sqrt(3 / (3 + 0)) is 1
assert np.allclose(step([1, 1, 2]), w)
w2 = w - 0.1 * 2 / 2 * (3 / (3 + g2sum))**0.5               # key 1: two gradients, two shows
got = step([1, 2, 3])[0]
assert np.allclose(got, w2, rtol=1e-5), (got, w2)
""")


def test_the_continuous_values_of_a_row_reach_the_net(run):
    run(HEAD + """
strategy.fleet_desc_configs = {"rows": {"sparse_embedx_threshold": 0.0}}
attr = paddle.ParamAttr(name="rows")
rows = paddle.static.nn.sparse_embedding(ids, [10, 5], param_attr=attr, entry=ShowClickEntry("show", "click"))
cvm = paddle.concat([paddle.cast(show, "float32"), paddle.cast(click, "float32")], axis=1)
values = paddle.static.nn.continuous_value_model(rows, cvm)
logit = paddle.nn.Linear(5, 1)(values)
loss = paddle.mean(paddle.nn.functional.binary_cross_entropy_with_logits(logit, paddle.cast(click, "float32")))
fleet.distributed_optimizer(paddle.optimizer.Adam(0.05), strategy).minimize(loss)
exe.run(paddle.static.default_startup_program())
losses = [float(step([1, 2], [1, 1], [1, 0], loss)) for _ in range(50)]
assert losses[-1] < losses[0] / 4, losses
seen = step([1, 2], [1, 1], [1, 0], values)
assert np.allclose(seen[0, :2], [np.log(51), 0.0]) and np.allclose(seen[1, :2], [np.log(51), -np.log(51)]), seen
""")


LAZY = {
    "momentum": ("Momentum(0.1, 0.8)", "s[0] = 0.8 * s[0] + g; w -= 0.1 * s[0]"),
    "nesterov": ("Momentum(0.1, 0.8, use_nesterov=True)",
                 "s[0] = 0.8 * s[0] + g; w -= 0.1 * (g + 0.8 * s[0])"),
    "decay": ("SGD(0.1, weight_decay=paddle.regularizer.L1Decay(0.5))", "w -= 0.1 * (g + 0.5 * np.sign(w))"),
    "adam": ("Adam(0.1)", "s[2] += 1; s[0] = 0.9 * s[0] + 0.1 * g; s[1] = 0.999 * s[1] + 0.001 * g * g; "
             "w -= 0.1 * s[0] / (1 - 0.9**s[2]) / (np.sqrt(s[1] / (1 - 0.999**s[2])) + 1e-8)"),
    "ftrl": ("Ftrl(0.1, l1=0.01, l2=0.1)",
             "n = s[0] + g * g; s[1] += g - (n**0.5 - s[0]**0.5) / 0.1 * w; s[0] = n; "
             "w = 0.0 if abs(s[1]) <= 0.01 else (np.sign(s[1]) * 0.01 - s[1]) / (n**0.5 / 0.1 + 0.2)"),
}


@pytest.mark.parametrize("name", LAZY)
def test_a_rule_changes_the_rows_of_a_batch_only(run, name):
    optimizer, update = LAZY[name]
    run(HEAD + f"""
train(optimizer=paddle.optimizer.{optimizer})
state = {{key: [0.5, [0.0, 0.0, 0.0]] for key in (1, 2, 3)}}
for keys in ([1, 2], [2, 3, 3], [1, 3], [2, 2, 2], [1, 2]):
    got = step(keys)
    assert np.allclose(got[:, 0], [state[key][0] for key in keys], rtol=1e-5, atol=1e-6), (keys, got, state)
    for key in set(keys):
        w, s = state[key]
        g = float(keys.count(key))
        {update}
        state[key][0] = w
""")


def test_a_day_ends_and_rows_that_nobody_shows_go(run):
    run(HEAD + """
strategy.sparse_table_configs = {"rows": {
    "table_parameters.rows.accessor.ctr_accessor_param.show_click_decay_rate": 0.5,
    "table_parameters.rows.accessor.ctr_accessor_param.delete_threshold": 0.3,
    "table_parameters.rows.accessor.ctr_accessor_param.base_threshold": 1.0}}
train(entry=ShowClickEntry("show", "click"))
step([1, 2, 3], [1, 4, 20], [0, 4, 0])                      # scores 0.1, 4, 2; half of it after a day
rows_of = lambda: training.client.rows(table.id)
assert rows_of() == 3
fleet.save_persistables(exe, "base", mode=2)
assert fleet.shrink() == 1 and rows_of() == 2
before = step([2, 3], [0, 0], [0, 0]).tolist()
fleet.load_model("base", 2)
assert rows_of() == 2 and np.asarray(training.client.pull_rows(table.id, [1], 2)).tolist() == [[0.5, 0.5]]
fleet.save_persistables(exe, "all", mode=3)
try:
    fleet.save_persistables(exe, "all", mode=6)
except paddle.Error as error:
    assert "mode=6" in str(error)
else:
    raise AssertionError
""")


def test_a_program_for_test_makes_no_rows(run):
    run(HEAD + """
train()
test = paddle.static.default_main_program().clone(for_test=True)
assert exe.run(test, feed={"ids": np.array([[7]])}, fetch_list=[rows])[0].tolist() == [[0.5, 0.5]]
assert training.client.rows(table.id) == 0
step([7])
assert training.client.rows(table.id) == 1
""")


def test_a_configured_adam_gives_the_rows_that_paddle_gives(run):
    # Paddle 2.6.2, asynchronous, saved after one merged push:
    # keys 1, 2 and 3 with show 2, w 0.1, m -0.2 (key 2: -0.4).
    run(HEAD + """
strategy.sparse_table_configs = {"rows": {
    "table_parameters.rows.accessor.accessor_class": "CtrCommonAccessor",
    **{f"table_parameters.rows.accessor.{block}_sgd_param.{field}": value for block in ("embed", "embedx")
       for field, value in {"name": "SparseAdamSGDRule", "adam.learning_rate": 0.1, "adam.initial_range": 0.0}.items()}}}
slot = paddle.static.data("slot", [None, 1], "int64", lod_level=1)
label = paddle.static.data("label", [None, 1])
looked_up = paddle.static.nn.sparse_embedding(slot, [100, 2 + 4], param_attr=paddle.ParamAttr(name="rows"))
pooled = paddle.static.nn.sequence_pool(looked_up, "sum")[:, 2:]
w = paddle.create_parameter([4, 1], "float32", attr=paddle.ParamAttr(
    name="w", trainable=False, initializer=paddle.nn.initializer.Constant(1.0)))
loss = paddle.mean(paddle.square(paddle.matmul(pooled, w) - label))
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
open("lines", "w").write("2 1 2 1 1.0\\n1 3 1 0.0\\n2 2 3 1 1.0\\n1 1 1 0.0\\n")
dataset = paddle.distributed.QueueDataset()
dataset.init(use_var=[slot, label], pipe_command="cat", batch_size=4)
dataset.set_filelist(["lines"])
exe.run(paddle.static.default_startup_program())
exe.train_from_dataset(dataset=dataset, fetch_list=[loss])
assert exe.last_pass.fetch_means == [0.5], exe.last_pass.fetch_means
training = loss.program.training
rows = np.asarray(training.client.pull_rows(training.plan.entries()[0].table.id, [1, 2, 3], 6))
np.testing.assert_allclose(rows[:, 0], 2)
np.testing.assert_allclose(rows[:, 1], 0)
np.testing.assert_allclose(rows[:, 2:], 0.1, rtol=1e-4)
""")


def test_all_rows_are_fetched_as_the_parameter_that_they_are(run):
    run("""
import numpy as np
import fleetrun as paddle
from fleetrun.static.training import tables_of
paddle.enable_static()
ids = paddle.static.data("ids", [None, 1], "int64")
rows = paddle.static.nn.sparse_embedding(ids, [9, 2], param_attr=paddle.ParamAttr(name="emb"))
paddle.optimizer.SGD(0.5).minimize(paddle.mean(rows * rows))
exe = paddle.static.Executor()
exe.run(paddle.static.default_startup_program())
feed = {"ids": np.array([[3], [5]])}
first, _ = exe.run(feed=feed, fetch_list=["emb", rows])
second, looked_up = exe.run(feed=feed, fetch_list=["emb", rows])
assert first.shape == (9, 2) and np.array_equal(first[[3, 5]], looked_up.reshape(2, 2)), (first, looked_up)
others = [0, 1, 2, 4, 6, 7, 8]
assert np.array_equal(first[others], second[others]) and first[others].any() and (first[[3, 5]] != second[[3, 5]]).all()
training = tables_of(paddle.static.default_main_program())
assert training.client.rows(training.plan.entries()[0].table.id) == 2  # a fetch makes none
""")

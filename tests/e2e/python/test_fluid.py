"""The spellings of Paddle 1.x that document 000 has."""


def test_a_program_of_fluid_layers(run):
    run("""
import numpy as np
from fleetrun import fluid

ids = fluid.layers.data(name="ids", shape=[1], dtype="int64")
dense = fluid.layers.data(name="dense", shape=[3], dtype="float32")
label = fluid.layers.data(name="label", shape=[-1, 1], append_batch_size=False, dtype="int64")
assert ids.shape == (-1, 1) and dense.shape == (-1, 3) and label.shape == (-1, 1)
rows = fluid.layers.embedding(input=ids, size=[50, 16], is_sparse=True)
assert rows.shape == (-1, 16)
predict = fluid.layers.fc(input=fluid.layers.concat([rows, dense], axis=1), size=2, act="softmax")
cost = fluid.layers.cross_entropy(input=predict, label=label)
assert cost.shape == (-1, 1)
avg_cost = fluid.layers.mean(cost)
auc, batch_auc, states = fluid.layers.auc(input=predict, label=label)
total = fluid.layers.reduce_sum(fluid.layers.relu(dense), dim=1)
fluid.optimizer.SGD(0.5).minimize(avg_cost)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
pe = fluid.ParallelExecutor(use_cuda=False, loss_name=avg_cost.name, main_program=fluid.default_main_program())
rng = np.random.default_rng(1)
losses = []
for step in range(40):
    keys = rng.integers(0, 50, (8, 1))
    feed = {"ids": keys, "dense": rng.normal(size=(8, 3)).astype("float32"), "label": keys % 2}
    loss, probability, sums, _ = pe.run(fetch_list=[avg_cost.name, predict.name, total.name, auc.name], feed=feed)
    losses.append(loss.mean())
    assert np.allclose(probability.sum(1), 1, atol=1e-5) and np.allclose(sums, np.maximum(feed["dense"], 0).sum(1), atol=1e-5)
assert np.mean(losses[-10:]) < np.mean(losses[:10])
""", CPU_NUM="2")


def test_names_that_are_not_there_are_named(run):
    assert "fleetrun has no paddle.fluid.layers.embeding; did you mean paddle.fluid.layers.embedding?" in run("""
from fleetrun import fluid
try:
    fluid.layers.embeding
except AttributeError as error:
    print(error)
""").stdout

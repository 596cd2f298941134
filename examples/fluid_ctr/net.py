"""The network of the scripts beside this file, in the spellings of Paddle 1.x."""
import paddle.fluid as fluid
from make_data import DICT_SIZE, SLOTS


def ctr():
    """Inputs and mean loss of a click model: a few slots of one id each,
    embedded sparsely, and a network behind them.

    Shape: each slot [batch, 1] int64, label [batch, 1] int64.
    """
    slots = [fluid.layers.data(name=f"C{i}", shape=[1], dtype="int64") for i in range(SLOTS)]
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")
    # is_sparse: a step touches, and sends, only the rows of its batch.
    rows = [fluid.layers.embedding(input=slot, size=[DICT_SIZE, 16], is_sparse=True) for slot in slots]
    hidden = fluid.layers.fc(input=fluid.layers.concat(rows, axis=1), size=32, act="relu")
    predict = fluid.layers.fc(input=hidden, size=2, act="softmax")
    avg_cost = fluid.layers.mean(fluid.layers.cross_entropy(input=predict, label=label))
    return [*slots, label], avg_cost

"""Wide & deep: a linear model over all features, and a small network over their embeddings, added up.

Source: Cheng et al., Wide & Deep Learning for Recommender Systems (2016). Both parts look their rows up in
sparse tables that the parameter servers hold; the network's weights are dense tables.
"""
import math

import fleetrun as paddle
from reader import CATEGORIES

DENSE_WIDTH = 3


class WideDeepModel:
    def __init__(self, embedding_width=8, hidden=(64, 32)):
        self.embedding_width = embedding_width
        self.hidden = hidden

    def net(self, is_train=True):
        """Builds the program's forward part; sets inputs, prediction, auc, and loss.

        Shape: dense_input[batch, 3] float32; C1..Cn[batch, 1] int64 ids;
        label[batch, 1] int64, 1 for a late flight.
        """
        dense = paddle.static.data(name="dense_input", shape=[None, DENSE_WIDTH], dtype="float32")
        ids = [paddle.static.data(name=name, shape=[None, 1], dtype="int64") for name in CATEGORIES]
        label = paddle.static.data(name="label", shape=[None, 1], dtype="int64")
        self.inputs = [dense, *ids, label]

        logit = paddle.add(self._wide(ids, dense), self._deep(ids, dense))
        self.prediction = paddle.nn.functional.sigmoid(logit)
        both = paddle.concat([1.0 - self.prediction, self.prediction], axis=1)
        self.auc, self.batch_auc, self.auc_state = paddle.static.auc(input=both, label=label)
        self.loss = None
        if is_train:
            cost = paddle.nn.functional.log_loss(self.prediction, paddle.cast(label, "float32"))
            self.loss = paddle.mean(cost)

    def _wide(self, ids, dense):
        """A weight for each feature: a table with rows of one number, all starting at zero."""
        weights = [self._rows(one, "wide", 1, paddle.nn.initializer.Constant(0.0)) for one in ids]
        linear = paddle.nn.Linear(DENSE_WIDTH, 1)
        return paddle.add(paddle.sum(paddle.concat(weights, axis=1), axis=1, keepdim=True), linear(dense))

    def _deep(self, ids, dense):
        start = paddle.nn.initializer.Normal(mean=0.0, std=0.01)
        found = [self._rows(one, "deep", self.embedding_width, start) for one in ids]
        layer = paddle.concat([*found, dense], axis=1)
        width = self.embedding_width * len(ids) + DENSE_WIDTH
        for size in self.hidden:
            spread = paddle.nn.initializer.Normal(mean=0.0, std=1.0 / math.sqrt(width))
            linear = paddle.nn.Linear(width, size, weight_attr=paddle.ParamAttr(initializer=spread))
            layer = paddle.nn.functional.relu(linear(layer))
            width = size
        return paddle.nn.Linear(width, 1)(layer)

    def _rows(self, ids, table, width, initializer):
        """[batch, width]: the row of each id; slots share the table, ids of different slots differ."""
        rows = paddle.static.nn.sparse_embedding(
            input=ids, size=[1 << 32, width],
            param_attr=paddle.ParamAttr(name=table, initializer=initializer))
        return paddle.reshape(rows, [-1, width])

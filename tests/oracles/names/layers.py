"""Layers, and what holds them."""

import numpy

X = numpy.sin(1 + numpy.arange(3 * 4) * 1.3).reshape(3, 4)
IDS = [[1, 0, 3], [3, 3, 1]]


def linear(paddle, net):
    x = net.parameter("x", X)
    return {"out": paddle.nn.Linear(4, 2)(x), "no bias": paddle.nn.Linear(4, 2, bias_attr=False)(x)}


def embedding(paddle, net):
    ids = net.data("ids", IDS, "int64")
    return {"out": paddle.nn.Embedding(5, 2)(ids), "padded": paddle.nn.Embedding(5, 2, padding_idx=3)(ids),
            "from the end": paddle.nn.Embedding(5, 2, padding_idx=-2)(ids)}


def activations(paddle, net):
    x = net.parameter("x", X)
    layers = (paddle.nn.ReLU(), paddle.nn.Sigmoid(), paddle.nn.Tanh(), paddle.nn.Softmax(),
              paddle.nn.LeakyReLU(),
              paddle.nn.LeakyReLU(0.3))
    return {f"{type(layer).__name__} {index}": layer(x) for index, layer in enumerate(layers)}


def flatten(paddle, net):
    x = net.parameter("x", X.reshape(3, 2, 2, 1))
    return {"all": paddle.nn.Flatten()(x), "middle": paddle.nn.Flatten(start_axis=1, stop_axis=2)(x)}


def dropout_for_test(paddle, net):
    x = net.data("x", X)
    outs = {"up": paddle.nn.Dropout(0.25)(x), "down": paddle.nn.Dropout(0.25, mode="downscale_in_infer")(x)}
    test = net.main.clone(for_test=True)
    return dict(zip(outs, net.run(outs.values(), program=test)))


def containers(paddle, net):
    x = net.parameter("x", X)
    row = paddle.nn.Sequential(paddle.nn.Linear(4, 3), paddle.nn.Tanh(), paddle.nn.Linear(3, 2))
    layers = paddle.nn.LayerList([paddle.nn.Linear(4, 2) for _ in range(2)])
    layers.append(paddle.nn.Linear(4, 2))
    return {"row": row(x), **{str(index): layer(x) for index, layer in enumerate(layers)}}


def layer(paddle, net):
    class TwoLayers(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.first = paddle.nn.Linear(4, 3)
            self.scale = self.create_parameter([3], default_initializer=paddle.nn.initializer.Constant(2.0))
            self.second = self.add_sublayer("last", paddle.nn.Linear(3, 1))

        def forward(self, x):
            return self.second(self.first(x) * self.scale)

    return {"out": TwoLayers()(net.parameter("x", X))}


def losses(paddle, net):
    logit, label = net.parameter("logit", X[:, :1]), net.data("label", [[1.0], [0.0], [1.0]])
    scores, classes = net.parameter("scores", X), net.data("classes", [[1], [0], [3]], "int64")
    guess = paddle.nn.Sigmoid()(logit)
    return {"bce": paddle.nn.BCELoss()(guess, label), "logits": paddle.nn.BCEWithLogitsLoss()(logit, label),
            "sum": paddle.nn.BCELoss(reduction="sum")(guess, label),
            "classes": paddle.nn.CrossEntropyLoss()(scores, classes),
            "each": paddle.nn.CrossEntropyLoss(reduction="none")(scores, classes)}


def fc(paddle, net):
    x, y = net.parameter("x", X), net.parameter("y", X.reshape(3, 2, 2))
    return {"plain": paddle.static.nn.fc(x, 2),
            "relu": paddle.static.nn.fc(x, 3, activation="relu", bias_attr=False),
            "flat": paddle.static.nn.fc(y, 2), "axes": paddle.static.nn.fc(y, 3, num_flatten_dims=2)}

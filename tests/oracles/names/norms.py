"""Layer norm, batch norm and prelu: the parameters' names are in the gradients'."""

import numpy
from name_cases import values_of, within

ROWS = numpy.sin(numpy.arange(5 * 4) * 1.3).reshape(5, 4)
IMAGE = numpy.sin(numpy.arange(3 * 2 * 3 * 4) * 1.7).reshape(3, 2, 3, 4)


def layer_norm(paddle, net):
    x = net.parameter("x", IMAGE)
    return {"last": paddle.nn.LayerNorm(4)(x), "two": paddle.nn.LayerNorm([3, 4], epsilon=0.001)(x),
            "no bias": paddle.nn.LayerNorm(4, bias_attr=False)(x),
            "functional": paddle.nn.functional.layer_norm(x, [2, 3, 4])}


def static_layer_norm(paddle, net):
    x = net.parameter("x", IMAGE)
    return {"first": paddle.static.nn.layer_norm(x),
            "last": paddle.static.nn.layer_norm(x, begin_norm_axis=3, act="relu"),
            "no shift": paddle.static.nn.layer_norm(x, shift=False)}


def batch_norm(paddle, net):
    x, rows = net.parameter("x", IMAGE), net.parameter("rows", ROWS)
    return {"2d": paddle.nn.BatchNorm2D(2)(x), "rows": paddle.nn.BatchNorm1D(4, momentum=0.7)(rows),
            "1d": paddle.nn.BatchNorm1D(2)(paddle.reshape(x, [3, 2, 12])),
            "plain": paddle.nn.BatchNorm(2, act="relu")(x),
            "last": paddle.nn.BatchNorm2D(4, data_format="NHWC")(x)}


def batch_norm_of_all(paddle, net):
    x = net.parameter("x", IMAGE)
    return {"always": paddle.nn.BatchNorm2D(2, use_global_stats=True)(x),
            "static": paddle.static.nn.batch_norm(x)}


def batch_norm_follows(paddle, net):
    rows = net.data("rows", ROWS)
    layer = paddle.nn.BatchNorm1D(4)
    out = layer(rows)
    test = net.main.clone(for_test=True)
    net.start()
    trained = [net.run([out])[0] for _ in range(2)][1]
    tested = net.run([out], program=test)[0]
    return {"trained": trained, "tested": tested, "mean": net.value("batch_norm1d_0.w_1"),
            "variance": net.value("batch_norm1d_0.w_2"), "again": net.run([out], program=test)[0]}


def prelu(paddle, net):
    x = net.parameter("x", IMAGE)
    return {"all": paddle.nn.PReLU()(x), "channels": paddle.nn.PReLU(2)(x),
            "last": paddle.nn.PReLU(4, data_format="NHWC")(x),
            "functional": paddle.nn.functional.prelu(x, net.parameter("w", [0.1, -0.2]))}


def static_prelu(paddle, net):
    x = net.parameter("x", IMAGE)
    return {mode: paddle.static.nn.prelu(x, mode) for mode in ("all", "channel", "element")}


def initial_values(paddle, net):
    net.keep_initial_values()
    x = net.parameter("x", IMAGE)
    layers = [paddle.nn.BatchNorm2D(2), paddle.nn.LayerNorm(4), paddle.nn.PReLU(2, init=0.3)]
    for layer in layers:
        layer(x)
    net.start()
    return {parameter.name: net.value(parameter.name) for layer in layers for parameter in layer.parameters()}


def groups_of_channels(paddle, net):
    x = net.parameter("image", numpy.sin(numpy.arange(96.0)).reshape(2, 4, 3, 4))
    last = paddle.transpose(x, [0, 2, 3, 1])
    attr = paddle.ParamAttr(name="scale", initializer=paddle.nn.initializer.Constant(2.0))
    bias = paddle.ParamAttr(name="bias")
    # Without a weight Paddle 2.6.2 gives x a gradient that differences do not: values alone are compared.
    plain = paddle.assign(x)
    plain.stop_gradient = True
    return {"layer": paddle.nn.GroupNorm(2, 4)(x), "plain": paddle.static.nn.group_norm(plain, 4),
            "last": paddle.static.nn.group_norm(last, 2, param_attr=attr, bias_attr=bias, data_layout="NHWC")}


def channels_of_examples(paddle, net):
    x = net.parameter("image", numpy.sin(numpy.arange(96.0)).reshape(2, 4, 3, 4))
    flat = paddle.reshape(x, [2, 4, 12])
    attr, bias = paddle.ParamAttr(name="scale"), paddle.ParamAttr(name="bias")
    return {"layer": paddle.nn.InstanceNorm2D(4)(x), "line": paddle.nn.InstanceNorm1D(4)(flat),
            "plain": paddle.static.nn.instance_norm(x),
            "own": paddle.static.nn.instance_norm(x, 1e-3, attr, bias),
            "function": paddle.nn.functional.instance_norm(x)}


COLUMNS = [[1.0, 2.0, 0.0, 3.0], [0.0, 1.5, -2.0, 0.5], [2.0, -1.0, 0.0, 0.25]]
SUMS = {"batch_size": 20.0, "batch_sum": 3.0, "batch_square": 12.0, "scale_w": 0.5, "bias": -0.25}


def data_norm(paddle, net):
    """With sums that are not their first values."""
    x = net.parameter("x", COLUMNS)
    fed = {name: net.parameter(name, COLUMNS) for name in ("sums", "slots", "moved", "both")}
    norm = paddle.static.nn.data_norm
    made = {
        "columns": norm(x, name="columns"),
        "sums": norm(fed["sums"], param_attr=SUMS, name="sums", epsilon=0.0005),
        "slots": norm(fed["slots"], param_attr=SUMS, name="slots", slot_dim=2),
        "moved": norm(fed["moved"], param_attr=SUMS, name="moved", enable_scale_and_shift=True, act="relu"),
        "both": norm(fed["both"], param_attr=SUMS, name="both", slot_dim=2, enable_scale_and_shift=True),
    }
    for name in made:
        for key, value in (("size", 20.0), ("sum", 3.0), ("square_sum", 12.0)):
            net.given[f"{name}.batch_{key}"] = value + numpy.arange(4, dtype="float32")
    return made


def data_norm_trains(paddle, net):
    """Without servers an optimizer takes what is added to the sums for gradients."""
    x, w = net.data("x", COLUMNS, shape=[3, 4]), net.parameter("w", [[1.0], [0.5], [2.0], [-1.0]])
    normal = paddle.static.nn.data_norm(x, param_attr=SUMS, name="dn")
    paddle.optimizer.SGD(0.1).minimize(paddle.mean(paddle.square(normal @ w)))
    for name, value in (("size", 20.0), ("sum", 3.0), ("square_sum", 12.0)):
        net.given["dn.batch_" + name] = numpy.full(4, value, "float32")
    net.start()
    for _ in range(3):
        net.run()
    names = ("w", "dn.batch_size", "dn.batch_sum", "dn.batch_square_sum")
    return {name: net.value(name) for name in names}


def _start_vectors(net):
    """The real Paddle counts them as trained, and fleetrun does not: both get the same."""
    for parameter in net.main.all_parameters():
        if "spectral_norm" in parameter.name:
            parameter.trainable = True
            net.given[parameter.name] = values_of(parameter.name, parameter.shape)


@within(relative=2e-5, absolute=1e-5)
def spectral_norm(paddle, net):
    w, kernel = net.parameter("w", IMAGE[0, 0]), net.parameter("kernel", IMAGE)
    made = {
        "fc": paddle.static.nn.spectral_norm(w),
        "conv": paddle.static.nn.spectral_norm(kernel, dim=1, power_iters=3, eps=1e-6),
        "layer": paddle.nn.SpectralNorm([3, 2, 3, 4], dim=1, power_iters=2)(kernel * 2.0),
    }
    _start_vectors(net)
    return made

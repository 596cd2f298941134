"""Convolutions and pools of sequences and images."""

import numpy
from name_cases import within

SEQUENCE = numpy.sin(numpy.arange(2 * 4 * 7) * 1.3).reshape(2, 4, 7)
IMAGE = numpy.sin(numpy.arange(2 * 4 * 6 * 5) * 1.7).reshape(2, 4, 6, 5)


def conv1d(paddle, net):
    x = net.parameter("x", SEQUENCE)
    wide = paddle.nn.Conv1D(4, 6, 3, stride=2, padding=2, dilation=2, groups=2)
    plain = paddle.nn.Conv1D(4, 3, [2], padding=[1, 2], bias_attr=False)
    return {"wide": wide(x), "plain": plain(x)}


def conv1d_channels_last(paddle, net):
    x = net.parameter("x", SEQUENCE.transpose(0, 2, 1))
    return {"same": paddle.nn.Conv1D(4, 3, 3, padding="SAME", data_format="NLC")(x)}


@within(absolute=1e-4)
def conv2d(paddle, net):
    x = net.parameter("x", IMAGE)
    return {"plain": paddle.nn.Conv2D(4, 3, 3)(x),
            "strides": paddle.nn.Conv2D(4, 4, [3, 2], stride=[2, 1], padding=[1, 2], dilation=[1, 2],
                                        groups=4)(x),
            "sides": paddle.nn.Conv2D(4, 2, 2, padding=[1, 0, 0, 2], bias_attr=False)(x),
            "same": paddle.nn.Conv2D(4, 2, 3, stride=2, padding="SAME")(x),
            "valid": paddle.nn.Conv2D(4, 2, 3, padding="VALID")(x)}


@within(absolute=1e-4)
def conv2d_channels_last(paddle, net):
    x = net.parameter("x", IMAGE.transpose(0, 2, 3, 1))
    return {"out": paddle.nn.Conv2D(4, 3, 3, padding=1, data_format="NHWC")(x)}


def functional_convolutions(paddle, net):
    functional = paddle.nn.functional
    weight, bias = net.parameter("w", numpy.cos(numpy.arange(24)).reshape(3, 4, 2)), net.parameter(
        "b", [0.5, -0.5, 1.0])
    square = net.parameter("s", numpy.cos(numpy.arange(48)).reshape(3, 4, 2, 2))
    return {"conv1d": functional.conv1d(net.data("x", SEQUENCE), weight, bias, stride=2),
            "conv2d": functional.conv2d(net.data("y", IMAGE), square, bias, padding=1)}


@within(absolute=1e-4)
def static_conv2d(paddle, net):
    return {"out": paddle.static.nn.conv2d(net.parameter("x", IMAGE), 3, 3, padding=1, act="relu")}


def max_pool1d(paddle, net):
    x = net.parameter("x", SEQUENCE)
    out, mask = paddle.nn.functional.max_pool1d(x, 3, stride=2, padding=1, return_mask=True)
    return {"layer": paddle.nn.MaxPool1D(2)(x), "out": out, "mask": mask,
            "ceil": paddle.nn.functional.max_pool1d(x, 2, 2, ceil_mode=True)}


def max_pool2d(paddle, net):
    x = net.parameter("x", IMAGE)
    out, mask = paddle.nn.functional.max_pool2d(x, [3, 2], stride=[2, 1], padding=[1, 1], return_mask=True)
    return {"layer": paddle.nn.MaxPool2D(2, stride=1)(x), "out": out, "mask": mask,
            "ceil": paddle.nn.functional.max_pool2d(x, 3, 2, ceil_mode=True),
            "same": paddle.nn.functional.max_pool2d(x, 3, 2, padding="SAME")}


def avg_pool1d(paddle, net):
    x = net.parameter("x", SEQUENCE)
    return {"layer": paddle.nn.AvgPool1D(3, 2, 1)(x),
            "counted": paddle.nn.functional.avg_pool1d(x, 3, 2, 1, exclusive=False)}


def avg_pool2d(paddle, net):
    x = net.parameter("x", IMAGE)
    return {"layer": paddle.nn.AvgPool2D(2)(x),
            "padded": paddle.nn.functional.avg_pool2d(x, 3, 2, 1),
            "counted": paddle.nn.functional.avg_pool2d(x, 3, 2, 1, exclusive=False),
            "ceil": paddle.nn.functional.avg_pool2d(x, 2, 2, ceil_mode=True),
            "divisor": paddle.nn.functional.avg_pool2d(x, 3, 2, 1, divisor_override=5)}


def adaptive_pools(paddle, net):
    image = net.parameter("image", numpy.sin(numpy.arange(2 * 3 * 5 * 7) * 1.3).reshape(2, 3, 5, 7))
    line, functional = image[:, :, 2], paddle.nn.functional
    return {"means": functional.adaptive_avg_pool2d(image, [3, 4]),
            "one": paddle.nn.AdaptiveAvgPool2D(1)(image),
            "high": functional.adaptive_avg_pool2d(image, [2, None]),
            "last": paddle.nn.AdaptiveAvgPool2D(2, data_format="NHWC")(paddle.transpose(image, [0, 2, 3, 1])),
            "largest": functional.adaptive_max_pool2d(image, [3, 4]),
            "square": paddle.nn.AdaptiveMaxPool2D(2)(image),
            "line_means": paddle.nn.AdaptiveAvgPool1D(3)(line),
            "line_largest": paddle.nn.AdaptiveMaxPool1D(3)(line)}


VOLUME = numpy.sin(numpy.arange(2 * 4 * 3 * 5 * 4) * 1.1).reshape(2, 4, 3, 5, 4)


@within(absolute=1e-4)
def transposed_images(paddle, net):
    x, functional = net.parameter("x", IMAGE), paddle.nn.functional
    layer = paddle.nn.Conv2DTranspose
    weight = net.parameter("w", numpy.cos(numpy.arange(48)).reshape(4, 3, 2, 2))
    return {"plain": layer(4, 3, 3)(x),
            "strides": layer(4, 6, [3, 2], stride=[2, 3], padding=[1, 0], output_padding=[1, 2], groups=2)(x),
            "apart": layer(4, 2, 3, stride=2, padding=[1, 0, 0, 2], dilation=2, bias_attr=False)(x),
            "sized": layer(4, 2, 3, stride=2, padding=1)(x, output_size=[12, 9]),
            "same": functional.conv2d_transpose(x, weight, stride=2, padding="SAME"),
            "valid": functional.conv2d_transpose(x, weight, padding="VALID"),
            "static": paddle.static.nn.conv2d_transpose(x, 4, filter_size=3, stride=2, padding=1, act="tanh"),
            "found": paddle.static.nn.conv2d_transpose(x, 4, output_size=[13, 12], stride=2)}


@within(absolute=1e-4)
def transposed_elsewhere(paddle, net):
    last = net.parameter("x", IMAGE.transpose(0, 2, 3, 1))
    layer = paddle.nn.Conv2DTranspose(4, 3, 3, stride=2, data_format="NHWC")
    line = paddle.nn.Conv1DTranspose(4, 3, 3, stride=2, padding=1, output_padding=1)
    return {"last": layer(last), "line": line(net.parameter("y", SEQUENCE))}


@within(absolute=1e-4)
def volumes(paddle, net):
    x, layer = net.parameter("x", VOLUME), paddle.nn.Conv3D
    return {"plain": layer(4, 3, 3)(x),
            "strides": layer(4, 6, [2, 3, 1], stride=[1, 2, 3], padding=[1, 0, 2], groups=2)(x),
            "apart": layer(4, 2, [2, 2, 2], stride=[2, 1, 1], padding=[0, 2, 1, 0, 0, 1], dilation=[2, 1, 2],
                           bias_attr=False)(x),
            "same": layer(4, 2, 3, stride=2, padding="SAME")(x),
            "static": paddle.static.nn.conv3d(x, 2, 3, padding=1, act="relu")}

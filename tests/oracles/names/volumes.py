"""Transposed convolutions and adaptive pools of volumes, and first values of filters."""

import numpy
from name_cases import within

VOLUME = numpy.sin(numpy.arange(2 * 4 * 3 * 5 * 4) * 1.7).reshape(2, 4, 3, 5, 4)


@within(absolute=1e-4)
def conv3d_transpose(paddle, net):
    x = net.parameter("x", VOLUME)
    plain = paddle.nn.Conv3DTranspose(4, 3, 2)
    steps = paddle.nn.Conv3DTranspose(4, 6, [3, 2, 3], stride=[2, 1, 3], padding=[1, 0, 2],
                                      dilation=[1, 2, 1], groups=2, output_padding=[1, 0, 1])
    sized = paddle.nn.Conv3DTranspose(4, 2, 3, stride=2, bias_attr=False)
    return {"plain": plain(x), "steps": steps(x), "sized": sized(x, [8, 11, 9]),
            "static": paddle.static.nn.conv3d_transpose(x, 2, filter_size=3, padding=1, act="relu"),
            "kernel": paddle.static.nn.conv3d_transpose(x, 2, output_size=[4, 6, 5])}


@within(absolute=1e-4)
def conv3d_transpose_channels_last(paddle, net):
    x = net.parameter("x", VOLUME.transpose(0, 2, 3, 4, 1))
    weight = net.parameter("w", numpy.cos(numpy.arange(4 * 2 * 8)).reshape(4, 2, 2, 2, 2))
    return {"out": paddle.nn.functional.conv3d_transpose(x, weight, net.parameter("b", [0.5, -1.0]), stride=2,
                                                         data_format="NDHWC")}


def adaptive_pools(paddle, net):
    x, functional = net.parameter("x", VOLUME), paddle.nn.functional
    last = paddle.nn.AdaptiveAvgPool3D([2, None, 3], data_format="NDHWC")
    return {"mean": functional.adaptive_avg_pool3d(x, 2), "sizes": paddle.nn.AdaptiveAvgPool3D([1, 5, 3])(x),
            "last": last(paddle.transpose(x, [0, 2, 3, 4, 1])), "most":
            functional.adaptive_max_pool3d(x, [2, 3, 1]), "layer": paddle.nn.AdaptiveMaxPool3D(2)(x)}


def first_values(paddle, net):
    initializer = paddle.nn.initializer
    def made(shape, first):
        return paddle.create_parameter(shape, "float32", attr=paddle.ParamAttr(initializer=first)) * 1.0
    return {"even": made([2, 1, 4, 4], initializer.Bilinear()),
            "odd": made([1, 2, 3, 3], initializer.Bilinear()),
            "dirac": made([3, 2, 3], initializer.Dirac()), "square": made([4, 2, 2, 3], initializer.Dirac(2))}

"""Pictures, sequences and volumes in other sizes, and their windows as columns."""

from name_cases import values_of, within
from name_operators import operator


def _sized(paddle, net, shape, modes, **more):
    made = {}
    for mode, sizes in modes.items():
        for name, arguments in sizes.items():
            x = net.parameter(f"x {mode} {name}".replace(" ", "_"), values_of(mode + name, shape) * 4)
            made[f"{mode} {name}"] = paddle.nn.functional.interpolate(x, mode=mode, **arguments, **more)
    return made


_TWO = {
    "larger": {"size": [7, 5]},
    "smaller": {"size": [2, 3]},
    "aligned": {"size": [6, 7], "align_corners": True},
    "scaled": {"scale_factor": [1.5, 0.7]},
    "between": {"size": [5, 8], "align_mode": 1},
}


@within(absolute=1e-5)
def pictures(paddle, net):
    nearest = {name: given for name, given in _TWO.items() if name != "aligned"}
    return _sized(paddle, net, [2, 2, 4, 3], {"nearest": nearest, "bilinear": _TWO})


@within(relative=1e-4, absolute=1e-4)
def cubic_pictures(paddle, net):
    return _sized(paddle, net, [1, 2, 4, 5], {"bicubic": _TWO})


@within(absolute=1e-5)
def channels_last(paddle, net):
    sizes = {"larger": {"size": [7, 5]}}
    return _sized(paddle, net, [2, 4, 3, 2], {"nearest": sizes, "bilinear": sizes}, data_format="NHWC")


@within(absolute=1e-5)
def sequences_and_volumes(paddle, net):
    lines = {"larger": {"size": [8]}, "scaled": {"scale_factor": [0.5]}}
    made = _sized(paddle, net, [2, 3, 5], {"linear": lines}, data_format="NCW")
    volumes = {"larger": {"size": [3, 4, 5]}, "aligned": {"size": [4, 2, 3], "align_corners": True}}
    return {**made, **_sized(paddle, net, [1, 2, 2, 3, 3], {"trilinear": volumes}, data_format="NCDHW")}


def layers(paddle, net):
    x = net.parameter("x", values_of("x", [1, 2, 3, 4]))
    return {"upsample": paddle.nn.Upsample(size=[6, 5], mode="bilinear")(x),
            "bilinear": paddle.nn.UpsamplingBilinear2D(scale_factor=2)(x),
            "nearest": paddle.nn.UpsamplingNearest2D(size=[5, 5])(x)}


def columns(paddle, net):
    x = net.parameter("x", values_of("x", [2, 3, 5, 6]))
    return {"plain": paddle.nn.functional.unfold(x, 3),
            "wide": paddle.nn.functional.unfold(x, [2, 3], [2, 1], [1, 0], [1, 2]),
            "layer": paddle.nn.Unfold(2, strides=2)(x)}


def channels(paddle, net):
    x = net.parameter("x", values_of("x", [2, 4, 4, 6]))
    return {"unshuffled": paddle.nn.functional.pixel_unshuffle(x, 2),
            "response": paddle.nn.functional.local_response_norm(x, 3, 0.5),
            "even": paddle.nn.LocalResponseNorm(2, 0.5, 0.5, 2.0)(x),
            "softmax": paddle.nn.Softmax2D()(x), "unflattened": paddle.nn.Unflatten(1, [2, 2])(x)}


@within(absolute=1e-5)
def volumes(paddle, net):
    x = net.parameter("x", values_of("x", [2, 3, 4, 4, 6]))
    return {"max": paddle.nn.functional.max_pool3d(x, 2), "avg": paddle.nn.AvgPool3D([2, 2, 3], 1)(x),
            "layer": paddle.nn.MaxPool3D(3, 2, 1)(x), "norm": paddle.nn.BatchNorm3D(3)(x)}


def older_pictures(paddle, net):
    """Those of 1.x: sizes that the scale gives say how far places are apart."""
    made = {}
    for kind, attributes in (("bilinear_interp", {"align_mode": 1}), ("nearest_interp", {})):
        for name, more in (("sized", {"out_h": 7, "out_w": 5, "align_corners": True}),
                           ("plain", {"out_h": 7, "out_w": 5, "align_corners": False}),
                           ("scaled", {"scale": 1.7, "align_corners": False})):
            x = net.parameter(f"x_{kind}_{name}", values_of(kind + name, [1, 2, 4, 3]) * 4)
            attrs = {**attributes, **more, "interp_method": kind.split("_")[0], "data_layout": "NCHW"}

            def older(layers):
                size = [more["out_h"], more["out_w"]] if "out_h" in more else None
                resample = kind.split("_")[0].upper()
                return {"Out": layers.image_resize(x, size, more.get("scale"), None, resample, None,
                                                   more["align_corners"])}

            out = operator(paddle, kind, {"X": x}, {"Out": "float32"}, attrs, older=older)
            made[f"{kind} {name}"] = out["Out"]
    return made


def older_columns(paddle, net):
    x = net.parameter("x", values_of("x", [2, 3, 4, 5]))
    attributes = {"kernels": [2, 3], "strides": [2, 1], "paddings": [1, 0, 1, 0], "out_stride": [1, 1]}
    made = operator(paddle, "im2sequence", {"X": x}, {"Out": "float32"}, attributes,
                    older=lambda layers: {"Out": layers.im2sequence(x, [2, 3], [2, 1], [1, 0, 1, 0])})
    values, lengths = paddle.static.nn.sequence_pad(made["Out"], paddle.full([1], 0.0, "float32"))
    return {"rows": values, "lengths": lengths}

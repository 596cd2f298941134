"""Layers, losses and metrics of Paddle by the types of their operators: what computes each here."""

from __future__ import annotations

from fleetrun import _graph as graph
from fleetrun import _lazy, tensor
from fleetrun._types import Any
from fleetrun.fluid import _images, _layers, _losses, _math
from fleetrun.fluid._operator import of_one, sizes
from fleetrun.nn import _norms as norms
from fleetrun.nn import functional
from fleetrun.nn._resized import resized
from fleetrun.static import sequence_lod
from fleetrun.static.sequences import Layout, context, lengths_of, with_lengths

__all__ = ["layer_table", "loss_table"]


def _fc(op):
    op.only(padding_weights=False)
    if op.at("activation_type") != "relu":
        op.only(activation_type="")
    out = _math.mul(op["Input"], op["W"], op.at("in_num_col_dims", 1), 1)
    bias = op.get("Bias")
    out = out if bias is None else tensor.add(out, tensor.reshape(bias, [-1]))
    return functional.relu(out) if op.at("activation_type") == "relu" else out


def _dropout(op):
    rate = op.at("dropout_prob", 0.5)
    implementation = op.at("dropout_implementation", "downgrade_in_infer")
    return _losses.dropout(
        op["X"], rate, bool(op.at("is_test", False)), dropout_implementation=implementation
    )


def _padding_of(op):
    algorithm = op.at("padding_algorithm", "EXPLICIT")
    return algorithm if algorithm in ("SAME", "VALID") else list(op.at("paddings", [0, 0]))


def _format(op):
    return "NHWC" if op.at("data_format", "NCHW") == "NHWC" else "NCHW"


def _convolved(function, op, **more):
    return function(
        op["Input"],
        op["Filter"],
        op.get("Bias"),
        stride=op.at("strides", [1, 1]),
        padding=_padding_of(op),
        dilation=op.at("dilations", [1, 1]),
        groups=op.at("groups", 1),
        data_format=_format(op),
        **more,
    )


def _conv(op):
    return _convolved(functional.conv2d, op)


def _conv_transpose(op):
    more = {"output_padding": op.at("output_padding") or 0, "output_size": op.at("output_size") or None}
    return _convolved(functional.conv2d_transpose, op, **more)


def _pool(op, with_index=False):
    if op.at("adaptive", False):
        return _layers.adaptive_pool2d(op["X"], op.at("ksize"), op.at("pooling_type", "max"), with_index)
    if with_index:
        return functional.max_pool2d(op["X"], op.at("ksize"), op.at("strides", [1, 1]), _padding_of(op), True)
    return _layers.pool2d(
        op["X"],
        op.at("ksize"),
        op.at("pooling_type", "max"),
        op.at("strides", [1, 1]),
        _padding_of(op),
        op.at("global_pooling", False),
        ceil_mode=op.at("ceil_mode", False),
        exclusive=op.at("exclusive", True),
        data_format=_format(op),
    )


def _resized(op):
    op.without("OutSize", "Scale").only(data_layout="NCHW")
    scale, mode = op.at("scale"), "nearest" if op.type.startswith("nearest") else "bilinear"
    size = sizes(op, "", ("SizeTensor",))
    if not size and not scale:
        size = [op.at("out_h"), op.at("out_w")]
    by_size = not op.type.endswith("_v2")
    corners = op.at("align_corners", True)
    return resized(op["X"], size, scale or None, mode, corners, op.at("align_mode", 1), False, by_size)


def _batch_norm(op):
    return functional.batch_norm(
        op["X"],
        op["Mean"],
        op["Variance"],
        op.get("Scale"),
        op.get("Bias"),
        not op.at("is_test", False),
        op.at("momentum", 0.9),
        op.at("epsilon", 1e-5),
        "NHWC" if op.at("data_layout", "NCHW") == "NHWC" else "NCHW",
        op.at("use_global_stats", False) or None,
    )


def _layer_norm(op):
    return norms.layer_norm_from(
        op["X"], op.at("begin_norm_axis", 1), op.get("Scale"), op.get("Bias"), op.at("epsilon", 1e-5)
    )


def _prelu(op):
    return norms.prelu_with(op["X"], op["Alpha"], op.at("mode", "all"), op.at("data_format", "NCHW"))


def _cross_entropy(op):
    return _losses.cross_entropy(
        op["X"], op["Label"], op.at("soft_label", False), op.at("ignore_index", -100)
    )


def _softmax_with_cross_entropy(op):
    if not op.at("use_softmax", True):  # of probabilities, which come back as they are
        op.only(axis=-1)
        return op["Logits"], _losses.cross_entropy(
            op["Logits"], op["Label"], op.at("soft_label", False), op.at("ignore_index", -100)
        )
    loss, softmax = functional.softmax_with_cross_entropy(
        op["Logits"],
        op["Label"],
        op.at("soft_label", False),
        op.at("ignore_index", -100),
        return_softmax=True,
        axis=op.at("axis", -1),
    )
    return softmax, loss


def _accuracy(op):
    """Of what a top_k gave: the share of rows that have their label among the Indices."""
    indices, label = op["Indices"], op["Label"]
    same = tensor.equal(tensor.cast(indices, "int64"), tensor.cast(tensor.reshape(label, [-1, 1]), "int64"))
    right = tensor.cast(tensor.any(same, axis=-1), "float32")
    total = tensor.slice(tensor.shape(label), [0], [0], [1])
    return tensor.mean(right), tensor.cast(tensor.sum(right), "int32"), total


def _auc(op):
    """Counts go on in the variables that the operator reads and writes."""
    op.without("InsTagWeight").only(curve="ROC")
    counts = [op["StatPos"], op["StatNeg"]]
    out = graph.unique_name(graph.unique_name("auc") + ".tmp")
    attributes = {
        "num_thresholds": int(op.at("num_thresholds", 4095)),
        "slide_steps": int(op.at("slide_steps", 1)),
    }
    return graph.append(
        "auc", "auc", [op["Predict"], op["Label"], *counts], attributes, [out, *(one.name for one in counts)]
    )[0]


def _pooled(op):
    return sequence_lod.sequence_pool(
        op["X"], op.at("pooltype", "AVERAGE").lower(), False, op.at("pad_value", 0.0)
    )


def _sequence_conv(op):
    op.without("PaddingData").only(contextStride=1)
    layout = Layout(lengths_of(op["X"], "sequence_conv"))
    rows = context(op["X"], layout, op.at("contextStart", 0), op.at("contextLength"))
    return with_lengths(functional.linear(tensor.concat(rows, 1), op["Filter"]), layout.lengths)


def _gru(op):
    layer = graph.unique_name("gru")
    attributes = {
        "is_reverse": bool(op.at("is_reverse", False)),
        "origin_mode": bool(op.at("origin_mode", False)),
        "gate_activation": op.at("gate_activation", "sigmoid"),
        "activation": op.at("activation", "tanh"),
    }
    inputs = [op["Input"], op.get("H0"), op["Weight"], op.get("Bias")]
    return graph.append("gru", "sequence_gru", inputs, attributes, graph.temporaries(layer, 2))[0]


def _lstm(op):
    attributes = {
        "use_peepholes": bool(op.at("use_peepholes", True)),
        "is_reverse": bool(op.at("is_reverse", False)),
        "gate_activation": op.at("gate_activation", "sigmoid"),
        "cell_activation": op.at("cell_activation", "tanh"),
        "candidate_activation": op.at("candidate_activation", "tanh"),
    }
    inputs = [op["Input"], op.get("H0"), op.get("C0"), op["Weight"], op["Bias"]]
    made = graph.append(
        "lstm", "sequence_lstm", inputs, attributes, graph.temporaries(graph.unique_name("lstm"), 3)
    )
    return made[0], made[1]


def layer_table() -> dict[str, Any]:
    return {
        "batch_norm": (_batch_norm, "Y"),
        **{
            name: _resized
            for name in ("bilinear_interp", "bilinear_interp_v2", "nearest_interp", "nearest_interp_v2")
        },
        "conv2d": (_conv, "Output"),
        "conv2d_transpose": (_conv_transpose, "Output"),
        "depthwise_conv2d": (_conv, "Output"),
        "dropout": _dropout,
        "fc": _fc,
        "gru": (_gru, "Hidden"),
        "layer_norm": (_layer_norm, "Y"),
        "lrn": of_one(_images.lrn, n=("n", 5), k=("k", 2.0), alpha=("alpha", 1e-4), beta=("beta", 0.75)),
        "lstm": (_lstm, "Hidden Cell"),
        "maxout": of_one(functional.maxout, groups=("groups", 1), axis=("axis", 1)),
        "max_pool2d_with_index": (lambda op: _pool(op, True), "Out Mask"),
        "pool2d": _pool,
        "prelu": _prelu,
        "sequence_concat": lambda op: sequence_lod.sequence_concat(list(op.inputs["X"])),
        "sequence_conv": _sequence_conv,
        "sequence_expand": lambda op: sequence_lod.sequence_expand(op["X"], op["Y"], op.at("ref_level", -1)),
        "sequence_pool": _pooled,
        "sequence_reshape": of_one(sequence_lod.sequence_reshape, new_dim=("new_dim", None)),
        "sequence_softmax": of_one(sequence_lod.sequence_softmax),
    }


def loss_table() -> dict[str, Any]:
    return {
        "accuracy": (_accuracy, "Accuracy Correct Total"),
        "auc": (_auc, "AUC"),
        "bce_loss": lambda op: functional.binary_cross_entropy(op["X"], op["Label"], reduction="none"),
        "cross_entropy": (_cross_entropy, "Y"),
        "cross_entropy2": (_cross_entropy, "Y"),
        "huber_loss": lambda op: _losses.huber_loss(op["X"], op["Y"], op.at("delta", 1.0)),
        "log_loss": (
            lambda op: functional.log_loss(op["Predicted"], op["Labels"], op.at("epsilon", 1e-4)),
            "Loss",
        ),
        "sigmoid_cross_entropy_with_logits": lambda op: _losses.sigmoid_cross_entropy_with_logits(
            op["X"], op["Label"], op.at("ignore_index", -100), None, op.at("normalize", False)
        ),
        "softmax_with_cross_entropy": (_softmax_with_cross_entropy, "Softmax Loss"),
    }


__getattr__, __dir__ = _lazy.attach(__name__)

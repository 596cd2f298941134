"""Operators of Paddle by their types, with their slots and attributes: what computes each here. append_op()
and programs that Paddle wrote are made of them."""

from __future__ import annotations

import functools

from fleetrun import tensor
from fleetrun._arguments import as_list
from fleetrun._types import Any, Callable, Variable

# fluid.layers itself changes what x + y means (_mode.is_of_1x).
from fleetrun.fluid import _losses, _math, _padding
from fleetrun.fluid._appended_calls import CALLS
from fleetrun.fluid._boxes_by_type import box_table
from fleetrun.fluid._layers_by_type import layer_table, loss_table
from fleetrun.fluid._operator import Function, Operator, of_one, sizes
from fleetrun.nn import functional

__all__ = ["compute", "types"]


def _axes(op, name="axes"):
    return [int(axis) for axis in op.at(name, [])]


def _broadcast(function: Callable[..., Variable]) -> Function:
    return lambda op: function(op["X"], op["Y"], op.at("axis", -1))


def _two(function: Callable[..., Variable]) -> Function:
    return lambda op: function(op["X"], op["Y"])


def _reduce(function: Callable[..., Variable]) -> Function:
    def reduced(op):
        dims = op.at("dim", [0])
        whole = op.at("reduce_all", False) or not dims
        out = function(op["X"], None if whole else dims, op.at("keep_dim", False))
        return out if op.at("out_dtype", -1) == -1 else tensor.cast(out, op.dtype("out_dtype"))

    return reduced


def _filled(op):
    op.without("ValueTensor")
    text = op.at("str_value", "")
    shape = sizes(op, "shape", ("ShapeTensorList",), ("ShapeTensor",))
    return tensor.full(
        [1] if shape is None else shape, float(text) if text else op.at("value", 0.0), op.dtype("dtype")
    )


def _values(op):
    """assign_value: its values lie in the attribute of their type."""
    names = ("values", "fp32_values", "int32_values", "int64_values", "bool_values")
    given: Any = next((op.at(name) for name in names if op.at(name)), [])
    kind = op.dtype("dtype")
    return tensor.reshape(tensor.cast(tensor.assign(given), kind), op.at("shape"))


def _rows(op, last_is_one):
    """The rows W of the ids, whose last axis is one in 1.x."""
    ids = tensor.squeeze(op["Ids"], [-1]) if last_is_one else op["Ids"]
    place = op.at("padding_idx", -1)
    return functional.embedding(ids, op["W"], None if place == -1 else place, op.at("is_sparse", False))


def _sliced(op):
    starts = sizes(op, "starts", ("StartsTensorList",), ("StartsTensor",))
    ends = sizes(op, "ends", ("EndsTensorList",), ("EndsTensor",))
    axes, gone = _axes(op), op.at("decrease_axis") or []
    if op.type == "strided_slice":
        strides = sizes(op, "strides", ("StridesTensorList",), ("StridesTensor",))
        out = tensor.strided_slice(op["Input"], axes, starts, ends, strides)
    else:
        out = tensor.slice(op["Input"], axes, starts, ends)
    return tensor.squeeze(out, gone) if gone else out


def _split(op):
    op.without("AxisTensor", "SectionsTensorList")
    return tensor.split(op["X"], op.at("num") or op.at("sections"), op.at("axis", 0))


def _one_hot(op, last_is_one):
    op.without("depth_tensor")
    given = tensor.squeeze(op["X"], [-1]) if last_is_one else op["X"]
    return functional.one_hot(given, op.at("depth"))


def _arg(function):
    def arg(op):
        axis = None if op.at("flatten", False) else op.at("axis", -1)
        return function(op["X"], axis, op.at("keepdims", False), op.dtype("dtype", "int64"))

    return arg


def _sorted(op):
    axis, falling = op.at("axis", -1), op.at("descending", False)
    return _math.argsort(op["X"], axis, falling)


def _largest(op):
    count = op.get("K")
    return tensor.topk(
        op["X"],
        op.at("k", 1) if count is None else count,
        op.at("axis", -1),
        op.at("largest", True),
        op.at("sorted", True),
    )


def _unit_length(op):
    """norm: X over its length along an axis."""
    return _math.l2_normalize(op["X"], op.at("axis", 1), op.at("epsilon", 1e-10))


def _p_norm(op):
    whole = op.at("asvector", False)
    return tensor.norm(
        op["X"], op.at("porder", 2.0), None if whole else op.at("axis", -1), op.at("keepdim", False)
    )


def _uniform(op):
    shape = sizes(op, "shape", ("ShapeTensorList",), ("ShapeTensor",))
    return _math.uniform_random(
        shape, op.dtype("dtype"), op.at("min", -1.0), op.at("max", 1.0), op.at("seed", 0)
    )


def _gaussian(op):
    shape = sizes(op, "shape", ("ShapeTensorList",), ("ShapeTensor",))
    return _math.gaussian_random(
        shape, op.at("mean", 0.0), op.at("std", 1.0), op.at("seed", 0), op.dtype("dtype")
    )


def _like(op):
    kind = op.at("dtype", -1)
    return tensor.full_like(op["X"], op.at("value", 0.0), None if kind == -1 else op.dtype("dtype"))


_UNARY = (
    "abs acos asin atan ceil cos erf exp floor log log10 log1p log2 logical_not reciprocal round rsqrt sign "
    "sin sqrt square tanh"
)
_ACTIVATIONS = "mish relu sigmoid silu softsign"
_COMPARE = (
    "equal greater_equal greater_than less_equal less_than logical_and logical_or logical_xor not_equal"
)


def _activation_table() -> dict[str, Any]:
    return {
        **{name: of_one(getattr(functional, name)) for name in _ACTIVATIONS.split()},
        "brelu": of_one(_losses.brelu, t_min=("t_min", 0.0), t_max=("t_max", 24.0)),
        "elu": of_one(functional.elu, alpha=("alpha", 1.0)),
        "gelu": of_one(functional.gelu, approximate=("approximate", False)),
        "hard_shrink": of_one(functional.hardshrink, threshold=("threshold", 0.5)),
        "hard_sigmoid": of_one(functional.hardsigmoid, slope=("slope", 0.2), offset=("offset", 0.5)),
        "hard_swish": of_one(
            _losses.hard_swish, threshold=("threshold", 6.0), scale=("scale", 6.0), offset=("offset", 3.0)
        ),
        "leaky_relu": of_one(functional.leaky_relu, negative_slope=("alpha", 0.02)),
        "log_softmax": of_one(functional.log_softmax, axis=("axis", -1)),
        "logsigmoid": of_one(functional.log_sigmoid),
        "relu6": of_one(_losses.relu6, threshold=("threshold", 6.0)),
        "selu": of_one(
            functional.selu, scale=("scale", 1.0507009873554805), alpha=("alpha", 1.6732632423543772)
        ),
        "softmax": of_one(functional.softmax, axis=("axis", -1)),
        "softplus": of_one(functional.softplus, beta=("beta", 1.0), threshold=("threshold", 20.0)),
        "softshrink": of_one(functional.softshrink, threshold=("lambda", 0.5)),
        "stanh": of_one(tensor.stanh, scale_a=("scale_a", 0.67), scale_b=("scale_b", 1.7159)),
        "swish": of_one(_losses.swish, beta=("beta", 1.0)),
        "tanh_shrink": of_one(functional.tanhshrink),
    }


def _shape_table() -> dict[str, Any]:
    flattened = of_one(_math.flatten, axis=("axis", 1))
    reshaped = lambda op: tensor.reshape(  # noqa: E731
        op["X"], sizes(op, "shape", ("ShapeTensor",), ("Shape",))
    )
    squeezed = lambda op: tensor.squeeze(op["X"], _axes(op) or None)  # noqa: E731
    unsqueezed = lambda op: tensor.unsqueeze(  # noqa: E731
        op["X"], sizes(op, "axes", ("AxesTensorList",), ("AxesTensor",))
    )
    transposed = lambda op: tensor.transpose(op["X"], _axes(op, "axis"))  # noqa: E731
    return {
        "concat": lambda op: tensor.concat(list(op.without("AxisTensor").inputs["X"]), op.at("axis", 0)),
        "expand": lambda op: _math.expand(
            op["X"], sizes(op, "expand_times", ("expand_times_tensor",), ("ExpandTimes",))
        ),
        "expand_as_v2": lambda op: (
            tensor.expand(op["X"], op.at("target_shape"))
            if op.get("Y") is None
            else tensor.expand_as(op["X"], op["Y"])
        ),
        "expand_v2": lambda op: tensor.expand(
            op["X"], sizes(op, "shape", ("expand_shapes_tensor",), ("Shape",))
        ),
        "flatten": flattened,
        "flatten2": flattened,
        "flatten_contiguous_range": of_one(
            tensor.flatten, start_axis=("start_axis", 1), stop_axis=("stop_axis", 1)
        ),
        "pad": of_one(_padding.pad, paddings=("paddings", None), pad_value=("pad_value", 0.0)),
        "pad2d": of_one(
            _padding.pad2d,
            paddings=("paddings", None),
            mode=("mode", "constant"),
            pad_value=("pad_value", 0.0),
            data_format=("data_format", "NCHW"),
        ),  # fmt: skip
        "reshape": reshaped,
        "reshape2": reshaped,
        "shape": lambda op: tensor.shape(op["Input"]),
        "slice": _sliced,
        "split": _split,
        "squeeze": squeezed,
        "squeeze2": squeezed,
        "stack": (lambda op: tensor.stack(list(op.inputs["X"]), op.at("axis", 0)), "Y"),
        "strided_slice": _sliced,
        "tile": lambda op: tensor.tile(
            op["X"], sizes(op, "repeat_times", ("repeat_times_tensor",), ("RepeatTimes",))
        ),
        "transpose": transposed,
        "transpose2": transposed,
        "unsqueeze": unsqueezed,
        "unsqueeze2": unsqueezed,
        "unstack": (lambda op: tensor.unstack(op["X"], op.at("axis", 0)), "Y"),
    }


def _selection_table() -> dict[str, Any]:
    return {
        "arg_max": _arg(tensor.argmax),
        "arg_min": _arg(tensor.argmin),
        "argsort": (_sorted, "Out Indices"),
        "gather": lambda op: tensor.gather(op.without("Axis")["X"], op["Index"], op.at("axis", 0)),
        "gather_nd": lambda op: tensor.gather_nd(op["X"], op["Index"]),
        "index_select": lambda op: tensor.index_select(op["X"], op["Index"], op.at("dim", 0)),
        "lookup_table": lambda op: _rows(op, op["Ids"].shape[-1:] == (1,)),
        "lookup_table_v2": lambda op: _rows(op, False),
        "one_hot": lambda op: _one_hot(op, op["X"].shape[-1:] == (1,)),
        "one_hot_v2": lambda op: _one_hot(op, False),
        "scatter": lambda op: tensor.scatter(op["X"], op["Ids"], op["Updates"], op.at("overwrite", True)),
        "top_k": (_largest, "Out Indices"),
        "top_k_v2": (_largest, "Out Indices"),
        "where": lambda op: tensor.where(op["Condition"], op["X"], op["Y"]),
    }


def _product_table() -> dict[str, Any]:
    elementwise = "add sub mul div max min pow mod floordiv"
    return {
        **{
            f"elementwise_{name}": _broadcast(getattr(_math, f"elementwise_{name}"))
            for name in elementwise.split()
        },
        **{
            f"reduce_{name}": _reduce(getattr(_math, f"reduce_{name}"))
            for name in ["sum", "mean", "max", "min", "prod", "all", "any"]
        },
        **{name: _two(getattr(tensor, name)) for name in _COMPARE.split()},
        **{name: of_one(getattr(tensor, name)) for name in _UNARY.split()},
        "bmm": _two(tensor.bmm),
        "clip": of_one(tensor.clip, ("Min", "Max"), min=("min", None), max=("max", None)),
        "cos_sim": _two(_math.cos_sim),
        "cumsum": lambda op: _math.cumsum(
            tensor.flatten(op["X"]) if op.at("flatten", False) else op["X"],
            0 if op.at("flatten", False) else op.at("axis", -1),
            op.at("exclusive", False),
            op.at("reverse", False),
        ),
        "dot": _two(tensor.dot),
        "sgd": (lambda op: op["Param"] - op["LearningRate"] * op["Grad"], "ParamOut"),
        "increment": lambda op: op["X"] + op.at("step", 1.0),
        "logsumexp": lambda op: tensor.logsumexp(
            op["X"], None if op.at("reduce_all", False) else op.at("axis", [0]), op.at("keepdim", False)
        ),
        "matmul": lambda op: _math.matmul(
            op["X"], op["Y"], op.at("transpose_X", False), op.at("transpose_Y", False), op.at("alpha", 1.0)
        ),
        "matmul_v2": lambda op: tensor.matmul(
            op["X"], op["Y"], op.at("trans_x", False), op.at("trans_y", False)
        ),
        "mean": of_one(_math.mean),
        "mul": lambda op: _math.mul(op["X"], op["Y"], op.at("x_num_col_dims", 1), op.at("y_num_col_dims", 1)),
        "norm": _unit_length,
        "p_norm": _p_norm,
        "pow": lambda op: tensor.pow(op.without("FactorTensor")["X"], op.at("factor", 1.0)),
        "scale": of_one(
            tensor.scale,
            ("ScaleTensor",),
            scale=("scale", 1.0),
            bias=("bias", 0.0),
            bias_after_scale=("bias_after_scale", True),
        ),
        "square_error_cost": lambda op: functional.square_error_cost(op["X"], op["Y"]),
        "squared_l2_norm": lambda op: tensor.reshape(tensor.sum(tensor.square(op["X"])), [1]),
        "sum": lambda op: tensor.add_n(list(op.inputs["X"])),
    }


def _made_table() -> dict[str, Any]:
    return {
        "assign": of_one(tensor.assign),
        "assign_value": _values,
        "cast": lambda op: tensor.cast(op["X"], op.dtype("out_dtype")),
        "fill_any_like": _like,
        "fill_constant": _filled,
        "fill_constant_batch_size_like": lambda op: _math.fill_constant_batch_size_like(
            op["Input"],
            op.at("shape"),
            op.dtype("dtype"),
            op.at("value", 0.0),
            op.at("input_dim_idx", 0),
            op.at("output_dim_idx", 0),
        ),  # fmt: skip
        "fill_zeros_like": of_one(tensor.zeros_like),
        "gaussian_random": _gaussian,
        "ones_like": of_one(tensor.ones_like),
        "uniform_random": _uniform,
        "zeros_like": of_one(tensor.zeros_like),
    }


@functools.cache
def types() -> dict[str, tuple[Function, list[str]]]:
    """{type: (what computes it, its outputs' slots)}."""
    parts = (
        _activation_table(), box_table(), layer_table(), loss_table(), _made_table(), _product_table(),
        _selection_table(), _shape_table(),
    )  # fmt: skip
    table: dict[str, tuple[Function, list[str]]] = {
        type: (call.of, call.outputs) for type, call in CALLS.items()
    }
    for type, entry in ((type, entry) for part in parts for type, entry in part.items()):
        function, slots = entry if isinstance(entry, tuple) else (entry, "Out")
        table[type] = (function, slots.split())
    return table


def compute(op: Operator) -> dict[str, list[Variable]]:
    """The outputs, by slot. Throws: Error(config) for an operator, or a way of it, that is not known here."""
    function, slots = types()[op.type]
    made = function(op)
    if len(slots) == 1:
        return {slots[0]: as_list(made)}
    return {slot: [one] for slot, one in zip(slots, made)}

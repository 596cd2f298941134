"""paddle.static.nn: layers as functions that make their own parameters."""

import math

from fleetrun import _lazy, framework, tensor
from fleetrun._arguments import as_list, warn_once
from fleetrun._error import Error
from fleetrun._param_attr import ParamAttr
from fleetrun._types import Any, DTypeLike, ParamLike, Sequence, Variable
from fleetrun.distributed.entries import EntryAttr
from fleetrun.nn import _norms, _windows, initializer
from fleetrun.static import lookups
from fleetrun.static.activated import activated
from fleetrun.static.sequence_lod import sequence_pool

__all__ = [
    "batch_norm", "continuous_value_model", "conv2d", "embedding", "fc", "layer_norm", "prelu",
    "sequence_pool", "sparse_embedding",
]  # fmt: skip


def fc(
    x: Variable | Sequence[Variable],
    size: int,
    num_flatten_dims: int = 1,
    weight_attr: ParamLike | Sequence[ParamLike] = None,
    bias_attr: ParamLike = None,
    activation: str | None = None,
    name: str | None = None,
) -> Variable:
    """activation(x @ weight + bias), for a list of inputs the sum of their products.

    The axes from num_flatten_dims on are one; weight[that size, size], bias[size] (bias_attr=False: none).
    """
    layer = name or framework.unique_name("fc")
    inputs = as_list(x)
    attrs = as_list(weight_attr, len(inputs))
    total: Any = None
    for variable, attr in zip(inputs, attrs):
        flat = (
            variable
            if variable.ndim == num_flatten_dims + 1
            else tensor.flatten(variable, num_flatten_dims, -1)
        )
        width = flat.shape[-1]
        if width < 1:
            raise Error(
                "config",
                f"paddle.static.nn.fc: {variable.name} has the shape {list(variable.shape)}",
                "the axes from num_flatten_dims on need known sizes",
            )
        weight = framework.make_parameter(layer, [width, size], "float32", attr, False, None, named=True)
        # Within the layer: the next nn.Linear takes the next number of "linear".
        product = framework.append("linear", "linear", [flat, weight], layer=layer)
        total = product if total is None else tensor.add(total, product)
    if bias_attr is not False:
        bias = framework.make_parameter(layer, [size], "float32", bias_attr, True, None, named=True)
        total = framework.append("elementwise_add", "elementwise_add", [total, bias], layer=layer)
    return activated("paddle.static.nn.fc", activation, total, layer)


def conv2d(
    input: Variable,
    num_filters: int,
    filter_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[Any] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int | None = None,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    """nn.functional.conv2d with its own weight and, unless bias_attr=False, bias. Shape: input[n, channels,
    high, wide]."""
    channels = input.shape[1 if data_format == "NCHW" else -1]
    # Paddle counts the layers that its own kernel computes by another name.
    alone = channels == groups and num_filters % channels == 0 and not use_cudnn
    layer = name or framework.unique_name("depthwise_conv2d" if alone else "conv2d")
    kernel = as_list(filter_size, 2)
    deviation = math.sqrt(2.0 / (math.prod(kernel) * channels))
    weight = framework.make_parameter(
        layer,
        [num_filters, channels // (groups or 1), *kernel],
        "float32",
        param_attr,
        False,
        initializer.Normal(0.0, deviation),
        named=True,
    )
    bias = (
        None
        if bias_attr is False
        else framework.make_parameter(layer, [num_filters], "float32", bias_attr, True, None, named=True)
    )
    out = _windows.conv2d_of(layer, input, weight, bias, stride, padding, dilation, groups or 1, data_format)
    return activated("paddle.static.nn.conv2d", act, out)


def layer_norm(
    input: Variable,
    scale: bool = True,
    shift: bool = True,
    begin_norm_axis: int = 1,
    epsilon: float = 1e-05,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """nn.functional.layer_norm over the axes from begin_norm_axis on, with its own scale (1) and shift
    (0)."""
    layer = name or framework.unique_name("layer_norm")
    size = [math.prod(input.shape[begin_norm_axis:])]
    if size[0] < 0:
        raise Error(
            "config",
            f"paddle.static.nn.layer_norm: {input.name} has the shape {list(input.shape)}",
            "the axes from begin_norm_axis on need known sizes",
        )
    weight = (
        framework.make_parameter(
            layer, size, "float32", param_attr, False, initializer.Constant(1.0), named=True
        )
        if scale
        else None
    )
    bias = (
        framework.make_parameter(layer, size, "float32", bias_attr, True, None, named=True) if shift else None
    )
    out = _norms.layer_norm_from(input, begin_norm_axis, weight, bias, epsilon, layer)
    return activated("paddle.static.nn.layer_norm", act, out)


def batch_norm(
    input: Variable,
    act: str | None = None,
    is_test: bool = False,
    momentum: float | Variable = 0.9,
    epsilon: float = 1e-05,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    use_global_stats: bool = False,
) -> Variable:
    """nn.functional.batch_norm with its own weight (1), bias (0), and running mean (0) and variance (1).
    momentum: a variable counts as 0.9, which is said once: Paddle's CPUs take no notice of it either."""
    if isinstance(momentum, Variable):
        warn_once(
            "momentum of batch_norm",
            f"batch_norm(momentum={momentum.name}): the variable has no effect, as on CPUs in Paddle: it is "
            "0.9",
        )
        momentum = 0.9
    layer = name or framework.unique_name("batch_norm")
    size = [input.shape[1 if data_layout == "NCHW" else -1]]
    weight = framework.make_parameter(
        layer, size, "float32", param_attr, False, initializer.Constant(1.0), named=True
    )
    bias = framework.make_parameter(layer, size, "float32", bias_attr, True, None, named=True)
    mean, variance = (
        framework.make_parameter(
            layer,
            size,
            "float32",
            ParamAttr(name=own, initializer=initializer.Constant(value), trainable=False),
            False,
            None,
            named=True,
        )
        for own, value in ((moving_mean_name, 0.0), (moving_variance_name, 1.0))
    )
    out = _norms.batch_norm_with(
        input,
        weight,
        bias,
        mean,
        variance,
        momentum,
        epsilon,
        data_layout,
        {"is_test": bool(is_test), "use_global_stats": bool(use_global_stats)},
        layer,
    )
    return activated("paddle.static.nn.batch_norm", act, out)


def prelu(
    x: Variable, mode: str, param_attr: ParamLike = None, data_format: str = "NCHW", name: str | None = None
) -> Variable:
    """x where it is positive, else alpha * x, with its own alpha (0.25): one ("all"), one for each channel
    ("channel") or one for each element of an example ("element")."""
    layer = name or framework.unique_name("prelu")
    last = data_format in ("NLC", "NHWC")
    shapes = {
        "all": [1],
        "element": [1, *x.shape[1:]],
        "channel": [1, x.shape[1], 1, 1] if not last else [1, 1, 1, x.shape[-1]],
    }
    if mode not in shapes:
        raise Error(
            "config",
            f'paddle.static.nn.prelu(mode="{mode}"): there is no such mode',
            "use all, channel or element",
        )
    alpha = framework.make_parameter(
        layer, shapes[mode], "float32", param_attr, False, initializer.Constant(0.25), named=True
    )
    return _norms.prelu_with(x, alpha, mode, data_format, layer)


def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: ParamLike = None,
    dtype: DTypeLike = "float32",
) -> Variable:
    """Rows of a new parameter of `size` [V, width] by id. Shape: input[..] int64 -> [.., width].

    is_sparse: only looked-up rows get gradients, and on servers the table is a sparse one; is_distributed:
    the same.
    """
    layer = framework.unique_name("embedding")
    weight = framework.make_parameter(layer, size, dtype, param_attr, False, None, named=True)
    sparse = bool(is_sparse or is_distributed)
    attributes = {"is_sparse": sparse, "padding_idx": _padding(padding_idx, weight.shape[0])}
    return framework.append("embedding", "embedding", [weight, input], attributes, layer=layer)


def sparse_embedding(
    input: Variable,
    size: Sequence[int],
    padding_idx: int | None = None,
    is_test: bool = False,
    entry: EntryAttr | None = None,
    table_class: str = "MemorySparseTable",
    param_attr: ParamLike = None,
    dtype: DTypeLike = "float32",
    slot: int | None = None,
) -> Variable:
    """Rows by id from a table without bounds: every id has a row, made on first use by the parameter's
    initializer.

    size: [any, width]; the first is not a limit. The table lies on the servers, or in this process when there
    are none. Shape: input[batch, 1] int64 -> [batch, width], as Paddle's; other shapes [..] -> [.., width].
    padding_idx: this id gives zeros and has no row; below 0 it counts from size[0]. is_test: the rows are
    read only.
    entry: CountFilterEntry or ProbabilityEntry say which ids get a row, ShowClickEntry counts shows and
    clicks in it.
    table_class: SSDSparseTable: cold rows may leave the server's memory for its disk. slot: kept in the row's
    statistics.
    Throws: Error(config) naming what is not known, and lookups of one parameter that disagree.
    """
    layer = framework.unique_name("sparse_embedding")
    weight = framework.make_parameter(layer, size, dtype, param_attr, False, None, named=True)
    lookups.note(framework.default_main_program(), weight.name, entry, table_class, slot)
    width = int(size[1])
    attributes = {"parameter": weight.name, "width": width, "padding_idx": _padding(padding_idx, size[0])}
    if is_test:
        attributes["is_test"] = True
    rows = framework.append("sparse_embedding", "sparse_embedding", [input], attributes, layer=layer)
    if input.ndim == 2 and input.shape[-1] == 1:
        return tensor.reshape(rows, [0, width])
    return rows


def _padding(padding_idx, rows):
    if padding_idx is None:
        return -1
    return int(padding_idx) if padding_idx >= 0 else int(rows) + int(padding_idx)


def continuous_value_model(input: Variable, cvm: Variable, use_cvm: bool = True) -> Variable:
    """Rows that begin with show and click, with log(show + 1) and log(click + 1) - log(show + 1) in their
    place.

    use_cvm=False: without the two. cvm[batch, 2]: show and click of each example, the gradient of the two
    columns.
    Shape: input[n, 2 + width] float32 -> [n, 2 + width], or [n, width].
    """
    return framework.append("continuous_value_model", "cvm", [input, cvm], {"use_cvm": bool(use_cvm)})


__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "sequence_lod": "static.sequence_lod",
        "control_flow": "static.control_flow",
        **_lazy.names("static.control_flow", "case cond switch_case while_loop"),
        **_lazy.names(
            "static.sequence_lod",
            "row_conv sequence_concat sequence_conv sequence_enumerate sequence_expand sequence_expand_as "
            "sequence_first_step sequence_last_step sequence_pad sequence_reshape sequence_reverse "
            "sequence_scatter sequence_slice sequence_softmax sequence_unpad",
        ),
        **_lazy.names("static.convolutions", "conv2d_transpose conv3d conv3d_transpose"),
        "nce": "static.sampled:nce",
        "py_func": "static.calls:py_func",
        "bilinear_tensor_product": "fluid._odd_layers:bilinear_tensor_product",
        **_lazy.names("static.norms", "data_norm group_norm instance_norm"),
        "spectral_norm": "nn._spectral:spectral_norm",
    },
)

"""Functions of nn.functional that bring values to mean 0 and variance 1, and prelu, which too has
channels."""

from fleetrun import framework, tensor
from fleetrun._arguments import as_list
from fleetrun._error import Error
from fleetrun._shapes import sizes_of
from fleetrun._types import Any, Sequence, Variable


def layer_norm(
    x: Variable,
    normalized_shape: int | Sequence[int],
    weight: Variable | None = None,
    bias: Variable | None = None,
    epsilon: float = 1e-05,
    name: str | None = None,
) -> Variable:
    """(x - mean) / sqrt(variance + epsilon) * weight + bias over the last axes, those of normalized_shape."""
    shape = as_list(normalized_shape)
    if list(x.shape[x.ndim - len(shape) :]) != shape:
        raise Error(
            "config",
            f"paddle.nn.functional.layer_norm(normalized_shape={shape}): {x.name} has the shape "
            f"{list(x.shape)}",
            "normalized_shape is the last of its sizes",
        )
    return layer_norm_from(x, x.ndim - len(shape), weight, bias, epsilon)


def layer_norm_from(
    x: Variable,
    begin_norm_axis: int,
    weight: Variable | None,
    bias: Variable | None,
    epsilon: float,
    layer: str | None = None,
) -> Variable:
    """layer_norm over the axes from begin_norm_axis on."""
    names = framework.temporaries(layer or framework.unique_name("layer_norm"), 3)
    return framework.append(
        "layer_norm",
        "layer_norm",
        [x, weight, bias],
        {"begin_norm_axis": int(begin_norm_axis), "epsilon": float(epsilon)},
        names,
    )[0]


def batch_norm(
    x: Variable,
    running_mean: Variable,
    running_var: Variable,
    weight: Variable | None = None,
    bias: Variable | None = None,
    training: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-05,
    data_format: str = "NCHW",
    use_global_stats: bool | None = None,
    name: str | None = None,
) -> Variable:
    """(x - mean) / sqrt(variance + epsilon) * weight + bias for each channel, over the batch.

    While training, the running mean and variance follow: momentum * running + (1 - momentum) * batch; else
    they are used.
    use_global_stats: True uses them always, False never; None does as `training` says.
    """
    attributes = {
        "use_global_stats": not training if use_global_stats is None else bool(use_global_stats),
        "trainable_statistics": use_global_stats is False,
        "is_test": not training,
    }
    return batch_norm_with(
        x, weight, bias, running_mean, running_var, momentum, epsilon, data_format, attributes
    )


def batch_norm_with(
    x: Variable,
    weight: Variable | None,
    bias: Variable | None,
    mean: Variable,
    variance: Variable,
    momentum: float,
    epsilon: float,
    data_format: str,
    attributes: dict[str, Any],
    layer: str | None = None,
) -> Variable:
    """batch_norm with these attributes of the operator."""
    if data_format not in ("NC", "NCL", "NCHW", "NLC", "NHWC", "NCDHW", "NDHWC"):
        raise Error(
            "config",
            f'paddle.nn.functional.batch_norm(data_format="{data_format}"): there is no such format',
            "use NC, NCL, NCHW, NCDHW, NLC, NHWC or NDHWC",
        )
    own = framework.temporaries(layer or framework.unique_name("batch_norm"), 5)
    # Only what is kept from run to run can follow the batch.
    kept = [one.name if one.persistable else made for one, made in zip((mean, variance), own[3:])]
    names = [own[0], *kept, *own[1:3]]
    return framework.append(
        "batch_norm",
        "batch_norm",
        [x, weight, bias, mean, variance],
        {
            "momentum": float(momentum),
            "epsilon": float(epsilon),
            "channels_last": data_format in ("NLC", "NHWC", "NDHWC"),
            **attributes,
        },
        names,
    )[0]


def prelu(x: Variable, weight: Variable, data_format: str = "NCHW", name: str | None = None) -> Variable:
    """x where it is positive, else weight * x. Shape: weight[1], or one for each channel."""
    if weight.ndim != 1:
        raise Error(
            "config",
            f"paddle.nn.functional.prelu: {weight.name} has the shape {list(weight.shape)}",
            "the weight has one dimension",
        )
    mode = "all" if weight.shape[0] == 1 else "channel"
    return prelu_with(x, weight, mode, data_format)


def prelu_with(
    x: Variable, weight: Variable, mode: str, data_format: str, layer: str | None = None
) -> Variable:
    """prelu with one weight for all, for each channel or for each element of an example."""
    if data_format not in ("NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC"):
        raise Error(
            "config",
            f'paddle.nn.functional.prelu(data_format="{data_format}"): there is no such format',
            "use NC, NCL, NCHW, NCDHW, NLC, NHWC or NDHWC",
        )
    return framework.append(
        "prelu",
        "prelu",
        [x, weight],
        {"mode": mode, "channels_last": mode == "channel" and data_format in ("NLC", "NHWC", "NDHWC")},
        layer=layer,
    )


def group_norm(
    x: Variable,
    groups: int,
    weight: Variable | None,
    bias: Variable | None,
    epsilon: float,
    data_format: str = "NCHW",
) -> Variable:
    """(x - mean) / sqrt(variance + epsilon) over each group of channels of each example, times weight plus
    bias of each channel. Counts as no layer_norm: a script's own ones are named as if this were none."""
    last = data_format in ("NLC", "NHWC", "NDHWC")
    channels = x.shape[-1 if last else 1]
    if channels < 1 or channels % groups:
        raise Error(
            "config",
            f"group_norm: {x.name} has the shape {list(x.shape)}, {channels} channels in {groups} groups",
            "let the groups have equally many channels",
        )
    first = [0, x.ndim - 1, *range(1, x.ndim - 1)]
    moved = tensor.transpose(x, first) if last else x
    sizes = sizes_of(moved)
    layer = framework.unique_name("norm_of_groups")
    out = tensor.reshape(
        layer_norm_from(tensor.reshape(moved, [0, groups, -1]), 2, None, None, epsilon, layer), sizes
    )
    for parameter, apply in ((weight, tensor.multiply), (bias, tensor.add)):
        if parameter is not None:
            out = apply(out, tensor.reshape(parameter, [1, channels] + [1] * (x.ndim - 2)))
    return tensor.transpose(out, [0, *range(2, x.ndim), 1]) if last else out


def instance_norm(
    x: Variable,
    running_mean: Variable | None = None,
    running_var: Variable | None = None,
    weight: Variable | None = None,
    bias: Variable | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.9,
    eps: float = 1e-05,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """(x - mean) / sqrt(variance + eps) over each channel of each example, times weight plus bias of each
    channel. running_mean, running_var, use_input_stats, momentum: no effect, as in Paddle."""
    framework.unique_name("instance_norm")  # which Paddle counts here
    return group_norm(x, x.shape[1], weight, bias, eps)

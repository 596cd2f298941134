"""paddle.fluid.nets: layers that are used together, as Paddle 1.x has them."""

from __future__ import annotations

from fleetrun import _lazy, tensor
from fleetrun._arguments import as_list
from fleetrun._types import Any, ParamLike, Sequence, Variable
from fleetrun.fluid import _layers, _losses
from fleetrun.nn import functional
from fleetrun.static import nn, sequence_lod

__all__ = [
    "glu", "img_conv_group", "scaled_dot_product_attention", "sequence_conv_pool", "simple_img_conv_pool",
]  # fmt: skip


def simple_img_conv_pool(
    input: Variable,
    num_filters: int,
    filter_size: int | Sequence[int],
    pool_size: int | Sequence[int],
    pool_stride: int | Sequence[int],
    pool_padding: Any = 0,
    pool_type: str = "max",
    global_pooling: bool = False,
    conv_stride: int | Sequence[int] = 1,
    conv_padding: Any = 0,
    conv_dilation: int | Sequence[int] = 1,
    conv_groups: int = 1,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    act: str | None = None,
    use_cudnn: bool = True,
) -> Variable:
    """conv2d, then pool2d."""
    made = nn.conv2d(
        input, num_filters, filter_size, conv_stride, conv_padding, conv_dilation, conv_groups, param_attr,
        bias_attr, use_cudnn, act,
    )  # fmt: skip
    return _layers.pool2d(made, pool_size, pool_type, pool_stride, pool_padding, global_pooling)


def img_conv_group(
    input: Variable,
    conv_num_filter: Sequence[int],
    pool_size: int | Sequence[int],
    conv_padding: Any = 1,
    conv_filter_size: Any = 3,
    conv_act: str | None = None,
    param_attr: Any = None,
    conv_with_batchnorm: Any = False,
    conv_batchnorm_drop_rate: Any = 0.0,
    pool_stride: int | Sequence[int] = 1,
    pool_type: str = "max",
    use_cudnn: bool = True,
) -> Variable:
    """conv2d with batch_norm and dropout, several times, then pool2d."""

    def each(value: Any) -> list[Any]:
        return as_list(value, len(conv_num_filter))

    for filters, padding, size, attr, normed, drop in zip(
        conv_num_filter,
        each(conv_padding),
        each(conv_filter_size),
        each(param_attr),
        each(conv_with_batchnorm),
        each(conv_batchnorm_drop_rate),
    ):
        act = None if normed else conv_act
        input = nn.conv2d(input, filters, size, padding=padding, param_attr=attr, act=act)
        if normed:
            input = nn.batch_norm(input, act=conv_act)
            input = input if abs(drop) < 1e-5 else _losses.dropout(input, drop)
    return _layers.pool2d(input, pool_size, pool_type, pool_stride)


def glu(input: Variable, dim: int = -1) -> Variable:
    """The first half of `input` along `dim` times the sigmoid of the second."""
    value, gate = tensor.split(input, 2, dim)
    return value * functional.sigmoid(gate)


def scaled_dot_product_attention(
    queries: Variable, keys: Variable, values: Variable, num_heads: int = 1, dropout_rate: float = 0.0
) -> Variable:
    """softmax(queries @ keys / sqrt(width)) @ values, in num_heads parts. Shape: [n, length, width] each."""

    def heads(x: Variable, named: bool) -> Variable:
        if num_heads == 1:
            return x
        x = nn.fc(x, x.shape[-1], 2) if named else x
        split = tensor.reshape(x, [0, 0, num_heads, x.shape[-1] // num_heads])
        return tensor.transpose(split, [0, 2, 1, 3])

    q, k, v = (heads(one, True) for one in (queries, keys, values))
    scaled = tensor.scale(q, (keys.shape[-1] // num_heads) ** -0.5)
    weights = functional.softmax(tensor.matmul(scaled, k, transpose_y=True))
    if dropout_rate:
        weights = _losses.dropout(weights, dropout_rate)
    out = tensor.matmul(weights, v)
    if num_heads == 1:
        return out
    return tensor.reshape(tensor.transpose(out, [0, 2, 1, 3]), [0, 0, values.shape[-1]])


def sequence_conv_pool(
    input: Variable,
    num_filters: int,
    filter_size: int,
    param_attr: ParamLike = None,
    act: str | None = "sigmoid",
    pool_type: str = "max",
    bias_attr: ParamLike = None,
) -> Variable:
    """sequence_conv and sequence_pool. Shape: input[total, width] with lod_level 1 -> [n, num_filters]."""
    rows = sequence_lod.sequence_conv(
        input, num_filters, filter_size, param_attr=param_attr, bias_attr=bias_attr, act=act
    )
    return sequence_lod.sequence_pool(rows, pool_type)


__getattr__, __dir__ = _lazy.attach(__name__)

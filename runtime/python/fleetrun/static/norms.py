"""paddle.static.nn: layers that bring channels to mean 0 and variance 1, with parameters of their own.
Where an attribute is left out there is no such parameter, as in Paddle 2.6.2."""

from __future__ import annotations

from fleetrun import framework
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun._param_attr import ParamAttr
from fleetrun._types import Any, ParamLike, Variable
from fleetrun.nn import _norms, initializer
from fleetrun.static.activated import activated

__all__ = ["data_norm", "group_norm", "instance_norm"]


def group_norm(
    input: Variable,
    groups: int,
    epsilon: float = 1e-05,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    act: str | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Groups of channels of each example to mean 0 and variance 1, times a weight (1) plus a bias (0) of each
    channel where their attributes are given."""
    if data_layout not in ("NCHW", "NHWC"):
        raise Error("config", f'paddle.static.nn.group_norm(data_layout="{data_layout}")', "use NCHW or NHWC")
    layer = name or framework.unique_name("group_norm")
    channels = input.shape[1 if data_layout == "NCHW" else -1]
    weight, bias = (
        _parameter(layer, channels, attr, value) if attr else None
        for attr, value in ((param_attr, 1.0), (bias_attr, None))
    )
    out = _norms.group_norm(input, groups, weight, bias, epsilon, data_layout)
    return activated("paddle.static.nn.group_norm", act, out)


def instance_norm(
    input: Variable,
    epsilon: float = 1e-05,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    name: str | None = None,
) -> Variable:
    """Each channel of each example to mean 0 and variance 1, times a weight (1) plus a bias (0) of each
    channel where both attributes are given."""
    layer = name or framework.unique_name("instance_norm")
    weight = bias = None
    if param_attr and bias_attr:
        weight = _parameter(layer, input.shape[1], param_attr, 1.0)
        bias = _parameter(layer, input.shape[1], bias_attr, None)
    return _norms.group_norm(input, input.shape[1], weight, bias, epsilon)


def data_norm(
    input: Variable,
    act: str | None = None,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    slot_dim: int = -1,
    sync_stats: bool = False,
    summary_decay_rate: float = 0.9999999,
    enable_scale_and_shift: bool = False,
) -> Variable:
    """Columns to mean 0 and variance 1 by all data seen so far. Shape: input[n, columns].

    That is kept in NAME.batch_size, NAME.batch_sum and NAME.batch_square_sum, to which a batch adds: servers
    add it up; without them it is taken for a gradient, as in Paddle. param_attr: a dict with their first
    values batch_size, batch_sum, batch_square, scale_w and bias. slot_dim: columns are slots of so many, the
    first their show; a slot without shows is 0 and counts nothing. The other arguments are those of Paddle's
    GPUs.
    """
    refuse("paddle.static.nn.data_norm", in_place=(in_place, False))
    layer, first = name or "dn", param_attr if isinstance(param_attr, dict) else {}

    def parameter(key, value):
        attr = ParamAttr(name=f"{layer}.{key}", initializer=initializer.Constant(float(value)))
        return framework.make_parameter(layer, [input.shape[-1]], "float32", attr, False, None, named=True)

    moved = [None, None]
    if enable_scale_and_shift:
        moved = [parameter("scale_w", first.get("scale_w", 1.0)), parameter("bias", first.get("bias", 0.0))]
    sums = [
        parameter("batch_size", first.get("batch_size", 1e4)),
        parameter("batch_sum", first.get("batch_sum", 0.0)),
        parameter("batch_square_sum", first.get("batch_square", 1e4)),
    ]
    outputs = framework.temporaries(framework.unique_name("data_norm"), 3)
    attributes = {"epsilon": float(epsilon), "slot_dim": int(slot_dim)}
    out = framework.append("data_norm", "data_norm", [input, *sums, *moved], attributes, outputs)[0]
    return activated("paddle.static.nn.data_norm", act, out)


def _parameter(layer, channels, attr, value):
    """One number for each channel, at first `value`; None: a bias, at first 0."""
    first = None if value is None else initializer.Constant(value)
    return framework.make_parameter(
        layer, [channels], "float32", None if attr is True else attr, value is None, first, named=True
    )

"""paddle.static.nn: layers that bring channels to mean 0 and variance 1, with parameters of their own.
Where an attribute is left out there is no such parameter, as in Paddle 2.6.2."""

from __future__ import annotations

from fleetrun import framework
from fleetrun._error import Error
from fleetrun._types import ParamLike, Variable
from fleetrun.nn import _norms, initializer
from fleetrun.static.activated import activated

__all__ = ["group_norm", "instance_norm"]


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


def _parameter(layer, channels, attr, value):
    """One number for each channel, at first `value`; None: a bias, at first 0."""
    first = None if value is None else initializer.Constant(value)
    return framework.make_parameter(
        layer, [channels], "float32", None if attr is True else attr, value is None, first, named=True
    )

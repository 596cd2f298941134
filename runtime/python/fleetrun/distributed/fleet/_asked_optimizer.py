"""The optimizer that a DistributedStrategy makes of the one it was given with.

    lamb, lamb_configs                    Adam becomes Lamb; exclude_from_weight_decay: ends of names of
                                          parameters
    lars, lars_configs                    Momentum becomes LarsMomentum; exclude_from_weight_decay: parts of
                                          names
    amp, amp_configs                      its loss has a scale, and steps of infinite gradients are left out
                                          (static/amp.py); not with dgc, which has no effect on either then
    gradient_merge, gradient_merge_configs  it steps once for k_steps batches (static/merged.py)

localsgd, adaptive_localsgd and dgc are for SGD and Momentum; with others they have no effect, said once.

As in Paddle these are for collective programs, whatever the number of trainers, and a weight_decay or
use_nesterov of the one that is exchanged is dropped. Source: Paddle 2.6.2, observed.
"""

from __future__ import annotations

import copy
from typing import Any

from fleetrun._arguments import warn_once
from fleetrun._error import Error
from fleetrun.optimizer import optimizers
from fleetrun.optimizer.older import LarsMomentum
from fleetrun.static import amp
from fleetrun.static.merged import GradientMergeOptimizer

_SWITCHES = ("lamb", "lars", "amp", "gradient_merge")
_APART = ("localsgd", "adaptive_localsgd", "dgc")


def fitting_strategy(strategy: Any, optimizer: Any) -> Any:
    """`strategy` without what has no effect with `optimizer`, which is said once."""
    asked = [name for name in _APART if getattr(strategy, name, False)]
    plain = getattr(optimizer, "_optimizer", optimizer)  # without its loss's scale
    if not asked or isinstance(plain, (optimizers.SGD, optimizers.Momentum)):
        return strategy
    fitting = copy.deepcopy(strategy)
    for name in asked:
        setattr(fitting, name, False)
        _left(name, "it is for SGD and Momentum; gradients are averaged in every step", plain)
    return fitting


def asked_optimizer(optimizer: Any, strategy: Any, is_collective: bool) -> Any:
    """`optimizer`, or what the strategy makes of it; what has no effect is said once. Throws: Error(config)
    for gradients that are to be merged and that local SGD or dgc leave apart."""
    asked = [name for name in _SWITCHES if getattr(strategy, name, False)]
    if asked and not is_collective:
        warn_once(
            f"{asked} without collective",
            f"DistributedStrategy.{', '.join(asked)}: no effect without fleet.init(is_collective=True)",
        )
        return optimizer
    if "lamb" in asked:
        optimizer = _as_lamb(optimizer, strategy.lamb_configs)
    if "lars" in asked:
        optimizer = _as_lars(optimizer, strategy.lars_configs)
    if "amp" in asked:
        optimizer = _as_amp(optimizer, strategy)
    merged: dict[str, Any] = strategy.gradient_merge_configs if "gradient_merge" in asked else {"k_steps": 1}
    if merged["k_steps"] == 1:
        return optimizer
    for other in _APART:
        if getattr(strategy, other):
            raise Error(
                "config",
                f"DistributedStrategy.gradient_merge with {other}: it merges means over all trainers, and "
                f"{other} makes none of whole gradients",
                "choose one of them",
            )
    return GradientMergeOptimizer(optimizer, merged["k_steps"], merged["avg"])


def _as_lamb(optimizer, configs):
    if not isinstance(optimizer, optimizers.Adam) or isinstance(optimizer, optimizers.AdamW):
        return _left("lamb", "it takes the place of Adam", optimizer)
    _say_what_is_dropped("lamb", optimizer)
    ends, given = tuple(configs["exclude_from_weight_decay"]), optimizer.config
    chosen: Any = optimizer._chosen
    return optimizers.Lamb(
        optimizer._learning_rate,
        lamb_weight_decay=configs["lamb_weight_decay"],
        beta1=given["beta1"],
        beta2=given["beta2"],
        epsilon=given["epsilon"],
        parameters=chosen,
        grad_clip=optimizer.grad_clip,
        exclude_from_weight_decay_fn=lambda parameter: parameter.name.endswith(ends),
    )


def _as_lars(optimizer, configs):
    if not isinstance(optimizer, optimizers.Momentum):
        return _left("lars", "it takes the place of Momentum", optimizer)
    _say_what_is_dropped("lars", optimizer)
    return LarsMomentum(
        optimizer._learning_rate,
        optimizer.config["momentum"],
        parameter_list=optimizer._chosen,
        grad_clip=optimizer.grad_clip,
        **configs,
    )


def _as_amp(optimizer, strategy):
    if strategy.dgc:
        warn_once("strategy amp", "DistributedStrategy.amp: no effect with dgc, as in Paddle")
        return optimizer
    configs = dict(strategy.amp_configs)
    names = ("custom_white_list", "custom_black_list", "custom_black_varnames")
    lists = amp.AutoMixedPrecisionLists(*(configs.pop(name) for name in names))
    for name in ("use_pure_bf16", "use_optimizer_fp16"):
        configs.pop(name)
    return amp.decorate(optimizer, lists, **configs)


def _left(name, why, optimizer):
    kind = type(optimizer).__name__
    warn_once(f"strategy {name}", f"DistributedStrategy.{name}: no effect with {kind}: {why}")
    return optimizer


def _say_what_is_dropped(name, optimizer):
    given = optimizer.config
    if given["l1_decay"] or given["l2_decay"] or given.get("nesterov"):
        what = "use_nesterov" if given.get("nesterov") else "weight_decay"
        warn_once(
            f"{what} of {name}",
            f"DistributedStrategy.{name}: {what} of {type(optimizer).__name__} has no effect, as in Paddle; "
            f"{name}_configs has a decay of its own",
        )

"""What torch.nn.parallel.DistributedDataParallel is given besides its module, for a script that gives it to
fleet.distributed_model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from fleetrun._error import Error
from fleetrun.distributed._world import Group, the_world

__all__ = ["DdpArguments", "check_module"]

# What changes no number: it is accepted, and done in our own way.
_FREE = {
    "output_device", "dim", "bucket_cap_mb", "find_unused_parameters", "check_reduction", "static_graph",
    "skip_all_reduce_unused_params", "bucket_cap_mb_list", "batched_grad_copy", "lazy_bucket_allocation",
}  # fmt: skip


@dataclass
class DdpArguments:
    """device: where inputs are moved before forward; None: nowhere. broadcast_buffers: at each forward; its
    newer name forward_sync_buffers leaves those of the start alone, which shares_first_buffers is about.
    free: others that were given, which change no number."""

    group: Group
    device: torch.device | None = None
    broadcast_buffers: bool = True
    shares_first_buffers: bool = True
    init_sync: bool = True
    gradient_as_bucket_view: bool = False
    free: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(module: torch.nn.Module, given: dict[str, Any]) -> DdpArguments:
        """Throws: Error(config) for what would change numbers and is not done, and what DDP refuses."""
        group = given.pop("process_group", None)
        if group is not None and not isinstance(group, Group):
            raise Error(
                "config",
                f"distributed_model(process_group={type(group).__name__}): it is not a group of fleetrun",
                "make it by fleetrun.distributed.new_group(ranks)",
            )
        made = DdpArguments(group if group is not None else the_world.default_group)
        for name in ("broadcast_buffers", "init_sync", "gradient_as_bucket_view"):
            value = given.pop(name, None)
            setattr(made, name, getattr(made, name) if value is None else bool(value))
        newer = given.pop("forward_sync_buffers", None)
        made.shares_first_buffers = made.broadcast_buffers or newer is not None
        made.broadcast_buffers = made.broadcast_buffers if newer is None else bool(newer)
        made.device = _device(module, given.pop("device_ids", None))
        for name, value in given.items():
            if name not in _FREE and value not in (None, False):
                raise Error(
                    "config",
                    f"distributed_model({name}={value!r}): there is no such argument, or it is not supported",
                    "leave it out",
                )
        made.free = dict(given)
        if not made.group.is_member():
            raise Error(
                "config",
                f"rank {the_world.rank} wraps a module for {made.group.name}, which has the ranks "
                f"{made.group.ranks}",
                "ask group.is_member() first",
            )
        return made


def _device(module, device_ids):
    """The one device of DDP's device_ids."""
    if not device_ids:
        return None
    on = next((parameter.device for parameter in module.parameters()), torch.device("cpu"))
    if len(device_ids) > 1 or on.type == "cpu":
        raise Error(
            "config",
            f"distributed_model(device_ids={list(device_ids)}) for a module on {on}",
            "leave device_ids out for a module in the host's memory; give one GPU for one on a GPU",
        )
    device = torch.device(device_ids[0] if not isinstance(device_ids[0], int) else f"cuda:{device_ids[0]}")
    if device != on:
        raise Error(
            "config",
            f"distributed_model(device_ids=[{device}]) for a module on {on}",
            "put the module there first: module.to(device)",
        )
    return device


def check_module(module: torch.nn.Module, parameters: list[tuple[str, torch.nn.Parameter]]) -> None:
    """Throws: Error(config) for modules that DDP refuses."""
    lazy = [
        name for name, value in parameters if isinstance(value, torch.nn.parameter.UninitializedTensorMixin)
    ]
    if lazy:
        raise Error(
            "config",
            f"'{lazy[0]}' of the module is not initialized",
            "let the module compute once before it is wrapped",
        )
    if not any(parameter.requires_grad for _, parameter in parameters):
        raise Error(
            "config",
            f"no parameter of the {type(module).__name__} requires a gradient: there is nothing to average",
            "use the module itself",
        )
    devices = sorted({str(parameter.device) for _, parameter in parameters})
    if len(devices) > 1:
        raise Error(
            "config",
            f"the module's parameters lie on {' and '.join(devices)}",
            "put the module on one device",
        )

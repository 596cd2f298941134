"""The state of modules and optimizers of PyTorch (distributed/parallel/snapshot.py)."""

from __future__ import annotations

from typing import Any

import torch

from fleetrun._error import Error

__all__ = ["check", "put", "state"]

# Of PyTorch's: what a rank of these has, no other one does.
_SHARDED = {"FullyShardedDataParallel", "FSDPModule", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"}


def check(each: Any, modules: list[Any]) -> None:
    """Throws: Error(config) for what another process in a rank's place cannot have, and for an optimizer of
    parameters that are not of `modules`."""
    parts = each.modules() if isinstance(each, torch.nn.Module) else [each]
    for part in parts:
        kinds = {kind.__name__ for kind in type(part).__mro__} & _SHARDED
        if kinds:
            _refuse_sharded(sorted(kinds)[0])
    if isinstance(each, torch.nn.Module):
        for name, tensor in [*each.named_parameters(), *each.named_buffers()]:
            if hasattr(tensor, "placements"):
                _refuse_sharded(f"'{name}', a {type(tensor.data).__name__}")
            if tensor.device.type != "cpu" or tensor.layout != torch.strided:
                raise Error(
                    "config",
                    f"recoverable() with '{name}' on {tensor.device}, layout {tensor.layout}",
                    "a rank's place is taken in jobs whose dense tensors are in the host's memory",
                )
        return
    known = {id(parameter) for module in modules for parameter in module.parameters()}
    if not all(id(parameter) in known for parameter in _parameters(each)):
        raise Error(
            "config",
            f"{type(each).__name__} has a parameter that is of none of the modules",
            "give recoverable() all modules, too",
        )


def _refuse_sharded(what):
    raise Error(
        "config",
        f"recoverable() with {what}: each rank keeps a part of the training that no other has",
        "use data parallel training, or --max_restart with checkpoints",
    )


def state(each: Any) -> dict[str, Any]:
    """What snapshot.state_of() copies."""
    if isinstance(each, torch.nn.Module):
        parameters = dict(each.named_parameters())
        return {
            "parameters": parameters,
            "gradients": {name: _dense_parts(parameter.grad) for name, parameter in parameters.items()},
            "buffers": dict(each.named_buffers()),
            "training": {name: module.training for name, module in each.named_modules()},
        }
    kept = {place: each.state[p] for place, p in enumerate(_parameters(each)) if p in each.state}
    settings = [
        {name: value for name, value in group.items() if name != "params"} for group in each.param_groups
    ]
    return {"kept": kept, "groups": settings}


@torch.no_grad()
def put(each: Any, state: dict[str, Any]) -> None:
    """What state() said; the optimizer or the gradients keep its tensors."""
    if isinstance(each, torch.nn.Module):
        _put_module(each, state)
    else:
        _put_optimizer(each, state)


def _put_module(module, state):
    buffers = dict(module.named_buffers())
    for name, parameter in module.named_parameters():
        parameter.copy_(state["parameters"][name])
        parameter.grad = _joined(state["gradients"][name])
    for name, values in state["buffers"].items():
        buffers[name].copy_(values)
    for name, part in module.named_modules():
        part.training = state["training"][name]


def _dense_parts(gradient):
    """Of a sparse one what it consists of."""
    if gradient is None or gradient.layout == torch.strided:
        return gradient
    rows = gradient.coalesce()
    return [rows.indices(), rows.values(), list(rows.shape)]


def _joined(gradient):
    if isinstance(gradient, list):
        return torch.sparse_coo_tensor(*gradient).coalesce()
    return gradient


def _put_optimizer(optimizer, state):
    optimizer.state.clear()
    for place, parameter in enumerate(_parameters(optimizer)):
        if place in state["kept"]:
            optimizer.state[parameter] = state["kept"][place]
    for group, settings in zip(optimizer.param_groups, state["groups"]):
        group.update(settings)


def _parameters(optimizer):
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]

"""The state of modules, optimizers and what else has state_dict(), as plain data: copied, put back, and sent.

module      its parameters with their gradients, its buffers, and which parts of it are in training mode
optimizer   what it keeps of each parameter, by the parameter's place, and the groups' settings
others      what state_dict() says; load_state_dict() takes it back
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy
import torch

from fleetrun._error import Error

__all__ = ["check_objects", "put_back", "state_of"]

_PLAIN = (type(None), bool, int, float, str, bytes, numpy.generic)


def check_objects(objects: tuple[Any, ...]) -> None:
    """Throws: Error(config) for what has no state, or one that cannot be kept."""
    modules = [each for each in objects if isinstance(each, torch.nn.Module)]
    if not modules:
        raise Error("config", "recoverable() without a module", "give it the model and its optimizer")
    known = {id(parameter) for module in modules for parameter in module.parameters()}
    for each in objects:
        if isinstance(each, torch.nn.Module):
            for name, tensor in [*each.named_parameters(), *each.named_buffers()]:
                if tensor.device.type != "cpu" or tensor.layout != torch.strided:
                    raise Error(
                        "config",
                        f"recoverable() with '{name}' on {tensor.device}, layout {tensor.layout}",
                        "a rank's place is taken in jobs whose dense tensors are in the host's memory",
                    )
        elif isinstance(each, torch.optim.Optimizer):
            if not all(id(parameter) in known for parameter in _parameters(each)):
                raise Error(
                    "config",
                    f"{type(each).__name__} has a parameter that is of none of the modules",
                    "give recoverable() all modules, too",
                )
        elif not (hasattr(each, "state_dict") and hasattr(each, "load_state_dict")):
            raise Error(
                "config",
                f"recoverable() with {type(each).__name__}, which has no state_dict() and load_state_dict()",
            )
    state_of(objects)


def state_of(objects: tuple[Any, ...]) -> list[Any]:
    """A copy of their states. Throws: Error(config) naming what is not data."""
    return [_state(each) for each in objects]


@torch.no_grad()
def put_back(objects: tuple[Any, ...], states: list[Any]) -> None:
    """What state_of() said, of these objects or of their like in another process. The states stay usable."""
    for each, state in zip(objects, states):
        if isinstance(each, torch.nn.Module):
            _put_module(each, state)
        elif isinstance(each, torch.optim.Optimizer):
            _put_optimizer(each, state)
        else:
            each.load_state_dict(_copy(state, type(each).__name__))


def _state(each):
    values: Any
    if isinstance(each, torch.nn.Module):
        parameters = dict(each.named_parameters())
        values = {
            "parameters": parameters,
            "gradients": {name: _dense_parts(parameter.grad) for name, parameter in parameters.items()},
            "buffers": dict(each.named_buffers()),
            "training": {name: module.training for name, module in each.named_modules()},
        }
    elif isinstance(each, torch.optim.Optimizer):
        kept = {place: each.state[p] for place, p in enumerate(_parameters(each)) if p in each.state}
        settings = [
            {name: value for name, value in group.items() if name != "params"} for group in each.param_groups
        ]
        values = {"kept": kept, "groups": settings}
    else:
        values = each.state_dict()
    return _copy(values, type(each).__name__)


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
        return torch.sparse_coo_tensor(*(_copy(each, "") for each in gradient)).coalesce()
    return None if gradient is None else gradient.clone()


def _put_optimizer(optimizer, state):
    name = type(optimizer).__name__
    optimizer.state.clear()
    for place, parameter in enumerate(_parameters(optimizer)):
        if place in state["kept"]:
            optimizer.state[parameter] = _copy(state["kept"][place], name)
    for group, settings in zip(optimizer.param_groups, state["groups"]):
        group.update(_copy(settings, name))


def _parameters(optimizer):
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _copy(value, whose):
    """The same of plain types alone, with arrays of its own."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, numpy.ndarray) and not value.dtype.hasobject:
        return value.copy()
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Mapping):
        return {key: _copy(each, whose) for key, each in value.items()}
    if isinstance(value, (list, tuple, set)):
        kind = tuple if isinstance(value, tuple) else type(value)
        return kind(_copy(each, whose) for each in value)
    raise Error(
        "config",
        f"the state of {whose} has an object of type {type(value).__qualname__}, which is not data",
        "keep numbers, texts, arrays and tensors in it, in lists and dicts",
    )

"""The state of modules, optimizers, programs and what else has state_dict(), as plain data: copied, put back,
and sent.

module      its parameters with their gradients, its buffers, and which parts of it are in training mode
optimizer   what it keeps of each parameter, by the parameter's place, and the groups' settings
program     distributed/parallel/program_state.py
others      what state_dict() says; load_state_dict(), or Paddle's set_state_dict(), takes it back
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy

from fleetrun._error import Error
from fleetrun.distributed.parallel import program_state

__all__ = ["check_objects", "followed_ddps", "put_back", "state_of"]

_PLAIN = (type(None), bool, int, float, str, bytes, numpy.generic)


def check_objects(objects: tuple[Any, ...]) -> None:
    """Throws: Error(config) for what has no state, or one that cannot be kept."""
    programs = [each for each in objects if program_state.program_of(each) is not None]
    modules = [each for each in objects if _torch_kind(each) == "module"]
    if not modules and not programs:
        raise Error(
            "config",
            "recoverable() without a module or a program",
            "give it the model and its optimizer, or the main program",
        )
    for each in objects:
        program = program_state.program_of(each)
        if program is not None:
            program_state.check_program(program)
        elif _torch_kind(each):
            _torch_state().check(each, modules)
        elif not hasattr(each, "state_dict") or _setter_of(each) is None:
            raise Error(
                "config",
                f"recoverable() with {type(each).__name__}, which has no state_dict() and load_state_dict()",
            )
    state_of(objects)


def state_of(objects: tuple[Any, ...]) -> list[Any]:
    """A copy of their states. Throws: Error(config) naming what is not data."""
    return [_copy(_state(each), type(each).__name__) for each in objects]


def put_back(objects: tuple[Any, ...], states: list[Any]) -> None:
    """What state_of() said, of these objects or of their like in another process. The states stay usable."""
    for each, state in zip(objects, states):
        state = _copy(state, type(each).__name__)
        program = program_state.program_of(each)
        if program is not None:
            program_state.put_program(program, state)
        elif _torch_kind(each):
            _torch_state().put(each, state)
        else:
            _setter_of(each)(state)


def _copy(value, whose):
    """The same of plain types alone, with arrays of its own."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
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


def followed_ddps(objects: tuple[Any, ...]) -> list[Any]:
    """PyTorch's own DistributedDataParallel in them: distributed/parallel/torch_ddp.py."""
    modules = [each for each in objects if _torch_kind(each) == "module"]
    if not modules:
        return []
    from fleetrun.distributed.parallel.torch_ddp import follow

    return [ddp for module in modules for ddp in follow(module)]


def _state(each):
    program = program_state.program_of(each)
    if program is not None:
        return program_state.state_of_program(program)
    return _torch_state().state(each) if _torch_kind(each) else each.state_dict()


def _setter_of(each):
    return getattr(each, "load_state_dict", None) or getattr(each, "set_state_dict", None)


def _torch_kind(each):
    """ "module" or "optimizer" of PyTorch, else nothing."""
    torch = sys.modules.get("torch")
    if torch is None:
        return ""
    if isinstance(each, torch.nn.Module):
        return "module"
    return "optimizer" if isinstance(each, torch.optim.Optimizer) else ""


def _torch_state():
    from fleetrun.distributed.parallel import torch_state

    return torch_state

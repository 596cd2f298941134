"""What scripts read of a torch.nn.parallel.DistributedDataParallel besides its module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["ATTRIBUTES", "logging_data"]

_MIB = 1024 * 1024
# As PyTorch's native code calls them.
_TYPES = {
    torch.float32: "float",
    torch.float64: "double",
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
}


def _first(model):
    return next(model.module.parameters())


# Attributes that PyTorch's has, and a module of the script may have too.
ATTRIBUTES: dict[str, Callable[[Any], Any]] = {
    "broadcast_buffers": lambda model: model._ddp.broadcast_buffers,
    "bucket_bytes_cap": lambda model: int((model._ddp.free.get("bucket_cap_mb") or 25) * _MIB),
    "device": lambda model: _first(model).device,
    "device_ids": lambda model: None if model._ddp.device is None else [model._ddp.device],
    "device_type": lambda model: _first(model).device.type,
    "dim": lambda model: model._ddp.free.get("dim") or 0,
    "find_unused_parameters": lambda model: bool(model._ddp.free.get("find_unused_parameters")),
    "gradient_as_bucket_view": lambda model: model._ddp.gradient_as_bucket_view,
    "is_multi_device_module": lambda model: False,
    "output_device": lambda model: model._ddp.free.get("output_device"),
    "parameters_to_ignore": lambda model: set(getattr(model.module, "_ddp_params_and_buffers_to_ignore", ())),
    "process_group": lambda model: model._ddp.group,
    "require_forward_param_sync": lambda model: True,
    "static_graph": lambda model: bool(model._ddp.free.get("static_graph")),
}


def logging_data(model: Any) -> dict[str, Any]:
    """What _get_ddp_logging_data() of PyTorch's says of how a model was made; no times."""
    parameters = [value for _, value in model._parameters_here() if value.requires_grad]
    said = {
        name: ATTRIBUTES[name](model)
        for name in ("broadcast_buffers", "find_unused_parameters", "gradient_as_bucket_view", "static_graph")
    }
    hook = model._hook
    return {
        **{name: int(value) for name, value in said.items()},
        "backend_name": "fleetrun",
        "bucket_cap_bytes": ATTRIBUTES["bucket_bytes_cap"](model),
        "comm_hook": "" if hook is None else getattr(hook.call, "__qualname__", str(hook.wire)),
        "device_ids": "" if model._ddp.device is None else str(model._ddp.device.index),
        "dtypes": ", ".join(sorted({_TYPES.get(value.dtype, str(value.dtype)) for value in parameters})),
        "module_name": type(model.module).__name__,
        "num_parameter_tensors": len(parameters),
        "rank": model._ddp.group.rank,
        "total_parameter_size_bytes": sum(value.numel() * value.element_size() for value in parameters),
        "world_size": model._ddp.group.nranks,
    }

"""Programs that know gloo, and not "fleetrun": FLEETRUN_TORCH_GLOO=1 makes groups of ours by that name."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as torch_distributed

from fleetrun._error import Error

__all__ = ["stand_in_where_asked", "warn_of_ignite"]


def stand_in_where_asked(make: Callable[..., Any]) -> None:
    """make(options, _): a group. Throws: Error(config) for another value, and where PyTorch is too old."""
    value = os.environ.get("FLEETRUN_TORCH_GLOO") or "0"
    if value not in ("0", "1"):
        raise Error("config", f'FLEETRUN_TORCH_GLOO="{value}" is neither 0 nor 1')
    if value == "0":
        return
    backend = torch_distributed.Backend
    if not hasattr(backend, "_ensure_backend_registered"):
        raise Error(
            "config",
            f"FLEETRUN_TORCH_GLOO=1 with PyTorch {torch.__version__}, which makes groups of gloo itself",
            'use PyTorch 2.15, or init_process_group("fleetrun")',
        )
    backend.register_backend("gloo", make, extended_api=True, devices=backend.backend_capability["gloo"])


def warn_of_ignite() -> None:
    """It leaves models alone under a backend that it does not know."""
    if "ignite" in sys.modules:
        warnings.warn(
            'ignite.distributed.auto_model does not know backend "fleetrun" and leaves a model alone: wrap '
            "it in torch.nn.parallel.DistributedDataParallel first, or use gloo with FLEETRUN_TORCH_GLOO=1",
            stacklevel=3,
        )

"""What a DistributedStrategy says about data parallel training, as one value."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fleetrun._error import Error

if TYPE_CHECKING:
    from fleetrun.distributed.parallel.compression import Compression

__all__ = ["ParallelOptions"]


@dataclass
class ParallelOptions:
    """communicators: buckets take them in turn. memory_mib, groups_size: see bucket_rule(). first_mib: the
    first bucket that is full in backward is not larger, so that communication begins early."""

    communicators: int = 1
    hierarchical: bool = False
    inner_size: int = 0
    memory_mib: float = 32.0
    groups_size: int = 1
    first_mib: float = 1.0
    joins_gradients: bool = True
    half_precision: bool = False
    compression_configs: dict | None = None  # of deep gradient compression, checked
    local_steps: dict | None = None  # k_steps, begin_step, is_adaptive
    communicator_options: dict = field(default_factory=dict)

    @functools.cached_property
    def compression(self) -> Compression | None:
        """The compression.Compression of a module and its optimizer, None without."""
        if self.compression_configs is None:
            return None
        from fleetrun.distributed.parallel.compression import Compression

        return Compression(**self.compression_configs)

    @staticmethod
    def of(strategy: Any) -> ParallelOptions:
        """The options that a DistributedStrategy has, with the variables of document 004 before it:
        FLAGS_fuse_parameter_memory_size (MiB) and FLAGS_fuse_parameter_groups_size."""
        options = ParallelOptions()
        if strategy is not None:
            options.communicators = strategy.nccl_comm_num
            options.hierarchical = strategy.use_hierarchical_allreduce
            options.inner_size = strategy.hierarchical_allreduce_inter_nranks if options.hierarchical else 0
            options.memory_mib = float(strategy.fuse_grad_size_in_MB)
            options.first_mib = float(strategy.last_comm_group_size_MB)
            options.joins_gradients = strategy.fuse_all_reduce_ops
            options.half_precision = bool(strategy.fp16_allreduce)
            if strategy.dgc:
                options.compression_configs = _checked_compression(strategy.dgc_configs)
            if strategy.adaptive_localsgd:
                configs = strategy.adaptive_localsgd_configs
                options.local_steps = {
                    "k_steps": configs["init_k_steps"],
                    "begin_step": configs["begin_step"],
                    "is_adaptive": True,
                }
            elif strategy.localsgd:
                options.local_steps = {**strategy.localsgd_configs, "is_adaptive": False}
        options.memory_mib = _number("FLAGS_fuse_parameter_memory_size", float, options.memory_mib)
        options.groups_size = _number("FLAGS_fuse_parameter_groups_size", int, options.groups_size)
        if options.hierarchical:
            inner = options.inner_size if options.inner_size > 1 else 0
            options.communicator_options = {"hierarchical": True, "inner_size": inner}
        return options


def _checked_compression(configs):
    """rampup_begin_step, rampup_step and sparsity of dgc_configs. Throws: Error(config) for values that
    cannot be."""
    begin, ramp = int(configs["rampup_begin_step"]), int(configs["rampup_step"])
    sparsity = [float(share) for share in configs["sparsity"] or [0.999]]
    if begin < 0 or ramp < 1:
        raise Error(
            "config",
            f"dgc_configs: rampup_begin_step={begin}, rampup_step={ramp}",
            "the first is at least 0, the second at least 1",
        )
    if not all(0 <= share < 1 for share in sparsity):
        raise Error("config", f"dgc_configs: sparsity={sparsity}", "each is a share from 0 to below 1")
    return {"begin_step": begin, "ramp_steps": ramp, "sparsity": sparsity}


def _number(name, number, default):
    text = os.environ.get(name)
    if not text:
        return default
    try:
        return number(text)
    except ValueError:
        raise Error("config", f'{name}="{text}" is not a number') from None

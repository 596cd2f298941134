"""PyTorch's own DistributedDataParallel in a training that goes on when a rank is lost: its reducer, which a
backward that failed leaves in the middle of its step, is made anew in each generation of the ranks, as
PyTorch makes it for a copy. Its process group stays, whose calls meet the new ranks."""

from __future__ import annotations

from typing import Any

import torch

from fleetrun._error import Error
from fleetrun.distributed._world import the_world

__all__ = ["FollowedDdp", "follow"]


def follow(module: torch.nn.Module) -> list[FollowedDdp]:
    """Those within a module, which are to be kept. Throws: Error(config) as FollowedDdp."""
    kind = torch.nn.parallel.DistributedDataParallel
    return [FollowedDdp(part) for part in module.modules() if isinstance(part, kind)]


class FollowedDdp:
    """Throws: Error(config) for one whose exchange cannot be made anew."""

    def __init__(self, model: Any) -> None:
        self._model = model
        backend = torch.distributed.get_backend(model.process_group)
        if backend != "fleetrun":
            raise Error(
                "config",
                f"recoverable() with DistributedDataParallel over backend {backend}, whose groups cannot be "
                "made anew",
                'import fleetrun.distributed.torch_backend, and call init_process_group("fleetrun")',
            )
        if getattr(model, "mixed_precision", None) is not None:
            raise Error("config", "recoverable() with DistributedDataParallel(mixed_precision=…)")
        the_world.followers.add(self)

    def check(self) -> None:
        """Before a step. Throws: Error(config) for what the script has asked it for since."""
        hook = self._model._get_ddp_logging_data().get("comm_hook")
        if hook:
            raise Error(
                "config",
                f"recoverable() with the communication hook {hook} of DistributedDataParallel, which may "
                "keep a state",
            )
        if self._model._join_config.enable:
            raise Error("config", "recoverable() within join()", "give all ranks as many batches each")

    def share_buffers(self) -> None:
        """At a step's end all have those of rank 0, which the next forward would give them: one that is lost
        takes none along."""
        model = self._model
        if model.broadcast_buffers and any(True for _ in model.module.buffers()):
            with torch.no_grad():
                model._assign_modules_buffers()
                model._distributed_broadcast_coalesced(model.modules_buffers, model.broadcast_bucket_size, 0)

    def drop(self) -> None:
        """The ranks' generation is over."""
        model = self._model
        if getattr(model, "_delay_all_reduce_all_params", False):
            return
        model.require_forward_param_sync = True
        parameters, has_sparse = model._build_params_for_reducer()
        names = model._build_debug_param_to_name_mapping(parameters)
        model._ddp_init_helper(parameters, has_sparse, names, model.static_graph)
        if getattr(model, "_require_manual_backward_finalization", False):
            model.require_manual_backward_finalization = True
        if model.static_graph:
            model.reducer._set_static_graph()
            model.logger._set_static_graph()

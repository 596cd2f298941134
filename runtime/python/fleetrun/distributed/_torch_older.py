"""What older PyTorch does for groups of NCCL alone, and newer for all."""

from __future__ import annotations

from typing import Any

import torch.distributed as torch_distributed

__all__ = ["shut_down_when_destroyed"]


def shut_down_when_destroyed(ours: type[Any]) -> None:
    """Lets destroy_process_group shut down groups of this type, where it does not by itself (PyTorch 2.6)."""
    module: Any = torch_distributed.distributed_c10d
    theirs = getattr(module, "_shutdown_backend", None)
    if theirs is None:
        return

    def shut_down(group: Any) -> None:
        theirs(group)
        if isinstance(group, ours):
            group.shutdown()

    module._shutdown_backend = shut_down

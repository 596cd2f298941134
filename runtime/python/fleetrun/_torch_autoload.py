"""What `import torch` calls where the package is installed from a wheel: with FLEETRUN_TORCH_GLOO it loads
our backend of torch.distributed (fleetrun.distributed.torch_backend), without it nothing."""

import os

__all__ = ["load"]


def load() -> None:
    """PyTorch calls it at the end of its import."""
    if os.environ.get("FLEETRUN_TORCH_GLOO", "0") not in ("", "0"):
        import fleetrun.distributed.torch_backend  # noqa: F401

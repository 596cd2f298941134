"""paddle.core, paddle.base.core, paddle.fluid.core: what scripts catch."""

from fleetrun.lod_tensor import LoDTensor

__all__ = ["EOFException", "LoDTensor"]


class EOFException(Exception):
    """The DataLoader that a program reads from has no more batches; DataLoader.reset() and start() begin
    again."""

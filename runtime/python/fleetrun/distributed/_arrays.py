"""Arrays of numpy, PyTorch and others, as the native calls take them: by DLPack, in place, without a copy."""

from fleetrun import _native
from fleetrun._error import Error


def view(array):
    """The memory of a contiguous array. Throws: Error(config) for what is no array, or none that collectives have."""
    if hasattr(array, "detach"):
        array = array.detach()
    if not hasattr(array, "__dlpack__"):
        raise Error("config", f"{type(array).__name__} is no array", "give it a numpy array, a torch.Tensor or what else has DLPack")
    try:
        return _native.ArrayView(array.__dlpack__())
    except (BufferError, TypeError, RuntimeError) as error:
        if isinstance(error, Error):
            raise
        raise Error("config", f"the array cannot be shared: {error}") from None


def empty_like(array, shape=None):
    """A new array of the same library and type."""
    shape = tuple(array.shape) if shape is None else shape
    if hasattr(array, "new_empty"):
        return array.detach().new_empty(shape)
    import numpy

    return numpy.empty(shape, dtype=array.dtype)


def copy(target, source):
    """Sets target's values."""
    if hasattr(target, "copy_"):
        target.detach().copy_(source)
    else:
        target[...] = source


def join(arrays):
    """The arrays behind each other, as one flat one."""
    if hasattr(arrays[0], "new_empty"):
        import torch

        return torch.cat([array.detach().reshape(-1) for array in arrays])
    import numpy

    return numpy.concatenate([numpy.asarray(array).reshape(-1) for array in arrays])

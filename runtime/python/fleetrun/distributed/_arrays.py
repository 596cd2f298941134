"""Arrays of numpy, PyTorch and others, as the native calls take them: by DLPack, in place, without a copy.

Where an array lies says which way a call goes: in the host's memory, or on a GPU of CUDA's. A call on a GPU
comes after what the framework's current stream has been given before, and has ended, for every stream, when
it has been waited for.
"""

import sys

from fleetrun import _native
from fleetrun._error import Error

_NAMES = ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"]
_PLAIN_TYPES = {f"torch.{name}": getattr(_native.DataType, name) for name in _NAMES}
# DLPack's types of devices: memory of CUDA's, and memory that it moves by itself.
_GPU = (2, 13)
# DLPack's words for streams: CUDA's legacy default stream, and none, for what is ordered in another way.
_DEFAULT_STREAM, _NO_STREAM = 1, -1


def view(array):
    """The memory of a contiguous array. Throws: Error(config) for what is not an array, or not one that
    collectives have."""
    known = _plain_type(array)
    if known is None:
        array = _of_numbers(array.detach() if hasattr(array, "detach") else array)
        known = _plain_type(array)
    if known is not None:
        kept = array.detach()  # its memory, also where the tensor gets another one
        return _native.ArrayView(kept.data_ptr(), kept.numel(), known, kept)
    if not hasattr(array, "__dlpack__"):
        raise Error(
            "config",
            f"{type(array).__name__} is not an array",
            "give it a numpy array, a torch.Tensor or what else has DLPack",
        )
    try:
        if not _is_on_gpu(array):
            return _native.ArrayView(array.__dlpack__())
        stream = current_stream(array)
        if stream is not None:
            return _native.ArrayView(array.__dlpack__(stream=_NO_STREAM), stream)
        return _native.ArrayView(array.__dlpack__(stream=_DEFAULT_STREAM))
    except (BufferError, TypeError, RuntimeError) as error:
        if isinstance(error, Error):
            raise
        raise Error("config", f"the array cannot be shared: {error}") from None


def _plain_type(array):
    """The type of a tensor of torch's whose values are what lies in the host's memory, for which DLPack would
    take longer than a small call; None: DLPack says what it is."""
    torch = sys.modules.get("torch")
    if torch is None or type(array) not in (torch.Tensor, torch.nn.Parameter) or not array.is_cpu:
        return None
    if array.layout is not torch.strided or not array.is_contiguous() or array.is_neg():
        return None
    return _PLAIN_TYPES.get(str(array.dtype))


def _of_numbers(array):
    """Bools as bytes and complex numbers as pairs, which DLPack does not have in every library."""
    kind = str(getattr(array, "dtype", ""))
    if kind == "torch.bool":
        return array.view(sys.modules["torch"].uint8)
    if kind.startswith("torch.complex"):
        return sys.modules["torch"].view_as_real(array)
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(array, numpy.ndarray) or not array.flags.c_contiguous:
        return array
    if kind == "bool":
        return array.view("uint8")
    if kind in ("complex64", "complex128"):
        return array.reshape(-1).view("float32" if kind == "complex64" else "float64")
    return array


def current_stream(array):
    """The cudaStream_t which torch gives its work now, on the GPU of a tensor of torch's; None: for any other
    array."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor) or not array.is_cuda:
        return None
    return torch.cuda.current_stream(array.device).cuda_stream


def empty_like(array, shape=None):
    """A new array of the same library and type."""
    shape = tuple(array.shape) if shape is None else shape
    if hasattr(array, "new_empty"):
        return array.detach().new_empty(shape)
    if _is_on_gpu(array):
        return array.__array_namespace__().empty(shape, dtype=array.dtype, device=array.device)
    import numpy

    return numpy.empty(shape, dtype=array.dtype)


def _is_on_gpu(array):
    return hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] in _GPU


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
    if _is_on_gpu(arrays[0]):
        library = arrays[0].__array_namespace__()
        return library.concat([library.reshape(array, (-1,)) for array in arrays])
    import numpy

    return numpy.concatenate([numpy.asarray(array).reshape(-1) for array in arrays])

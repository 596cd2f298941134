"""paddle.core, paddle.base.core, paddle.fluid.core: what scripts take of Paddle's C++ module."""

from __future__ import annotations

from fleetrun import _dtypes, _lazy
from fleetrun._error import Error
from fleetrun.lod_tensor import LoDTensor, LoDTensorArray

__all__ = ["EnforceNotMet", "EOFException", "get_cuda_device_count", "LoDTensor", "LoDTensorArray", "VarDesc"]

# What Paddle's C++ raises, for those who catch it.
EnforceNotMet = Error


class EOFException(Exception):
    """The DataLoader that a program reads from has no more batches; DataLoader.reset() and start() begin
    again."""


class VarDesc:
    """Types of variables by their names in Paddle's program files."""

    class VarType:
        """A DType for each that the engine has; the others are names that calls refuse."""

        FP32 = _dtypes.float32
        FP64 = _dtypes.float64
        INT32 = _dtypes.int32
        INT64 = _dtypes.int64
        BOOL = _dtypes.bool
        FP16 = _dtypes.float16
        BF16 = _dtypes.bfloat16
        UINT8 = _dtypes.uint8
        INT8 = _dtypes.int8
        INT16 = _dtypes.int16
        LOD_TENSOR = "LOD_TENSOR"
        SELECTED_ROWS = "SELECTED_ROWS"
        LOD_TENSOR_ARRAY = "LOD_TENSOR_ARRAY"
        READER = "READER"
        RAW = "RAW"
        FEED_MINIBATCH = "FEED_MINIBATCH"
        FETCH_LIST = "FETCH_LIST"
        STEP_SCOPES = "STEP_SCOPES"


def get_cuda_device_count() -> int:
    """0: the engine runs on the CPU."""
    return 0


__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.names("_scope", "Scope"),
        "_Scope": "_scope:Scope",
        "Place": "_places:CPUPlace",
        **_lazy.names("_places", "CPUPlace CUDAPlace CUDAPinnedPlace XPUPlace NPUPlace CustomPlace"),
        **_lazy.names("_places", "is_compiled_with_cuda is_compiled_with_xpu is_compiled_with_rocm"),
    },
    owner="paddle.base.core",
)

"""paddle.core, paddle.base.core, paddle.fluid.core: what scripts take of Paddle's C++ module."""

from __future__ import annotations

import enum

from fleetrun import _dtypes, _lazy, _unusable
from fleetrun._error import Error
from fleetrun.lod_tensor import LoDTensor, LoDTensorArray

__all__ = [
    "EnforceNotMet", "EOFException", "get_cuda_device_count", "LoDTensor", "LoDTensorArray",
    "is_compiled_with_mkldnn", "op_proto_and_checker_maker", "size_of_dtype",
    "supports_bfloat16", "supports_bfloat16_fast_performance", "supports_int8", "VarDesc",
]  # fmt: skip

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


class op_proto_and_checker_maker:  # noqa: N801, Paddle's name
    """How Paddle's operators say what part of the training they belong to."""

    class OpRole(enum.IntFlag):
        """The value of the attribute "op_role"; parts are or-ed."""

        Forward = 0
        Backward = 1
        Optimize = 2
        RPC = 4
        Dist = 8
        LRSched = 16
        Loss = 256

    @staticmethod
    def kOpRoleAttrName() -> str:  # noqa: N802
        """The attribute's name."""
        return "op_role"

    @staticmethod
    def kOpRoleVarAttrName() -> str:  # noqa: N802
        """That of the parameters and their gradients."""
        return "op_role_var"

    @staticmethod
    def kOpNameScopeAttrName() -> str:  # noqa: N802
        """That of the name scope."""
        return "op_namescope"

    @staticmethod
    def kOpDeviceAttrName() -> str:  # noqa: N802
        """That of the device."""
        return "op_device"

    @staticmethod
    def kOpCreationCallstackAttrName() -> str:  # noqa: N802
        """That of the lines of Python."""
        return "op_callstack"


def get_cuda_device_count() -> int:
    """0: the engine runs on the CPU."""
    return 0


def is_compiled_with_mkldnn() -> bool:
    """False."""
    return False


def supports_bfloat16() -> bool:
    """False: the engine computes with float32."""
    return False


supports_bfloat16_fast_performance = supports_int8 = supports_bfloat16


def size_of_dtype(dtype: _dtypes.DTypeLike) -> int:
    """Bytes of a value of the type. Throws: Error(config) for what is not one."""
    name = _dtypes.name_of(dtype)
    return 1 if name == "bool" else int(name.lstrip("abfilnotu")) // 8


_found, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.names("_scope", "Scope"),
        "_Scope": "_scope:Scope",
        "Place": "_places:CPUPlace",
        **_lazy.names("_places", "CPUPlace CUDAPlace CUDAPinnedPlace XPUPlace NPUPlace CustomPlace"),
        **_lazy.names("_places", "is_compiled_with_cuda is_compiled_with_xpu is_compiled_with_rocm"),
        **_lazy.names("_older_predictor", "AnalysisConfig create_paddle_predictor NativeConfig PaddleBuf"),
        **_lazy.names("_older_predictor", "PaddleDType PaddlePredictor PaddleTensor"),
        "AnalysisPredictor": "_older_predictor:PaddlePredictor",
    },
    owner="paddle.base.core",
)
__getattr__ = _unusable.beside(_found, "paddle.base.core", "Graph Node PassBuilder")

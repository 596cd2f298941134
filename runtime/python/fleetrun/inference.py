"""paddle.inference: saved models, asked through handles. A predictor runs the model as
paddle.static.load_inference_model and an Executor do, on the CPU."""

from __future__ import annotations

import enum
import os
from typing import Any

import numpy

from fleetrun import _lazy, framework
from fleetrun._arguments import warn_once
from fleetrun._error import Error

__all__ = [
    "Config", "create_predictor", "DataType", "get_num_bytes_of_data_type", "get_version", "PlaceType",
    "PrecisionType", "Predictor", "PredictorPool", "Tensor",
]  # fmt: skip


class PrecisionType(enum.Enum):
    """How numbers are computed: float32 here."""

    Float32 = 0
    Int8 = 1
    Half = 2
    Bfloat16 = 3


class PlaceType(enum.Enum):
    """Where tensors lie: the CPU here."""

    UNK = -1
    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM = 3


class DataType(enum.Enum):
    """Types of tensors."""

    FLOAT64 = 0
    FLOAT32 = 1
    INT64 = 2
    INT32 = 3
    UINT8 = 4
    INT8 = 5
    BOOL = 6


_BYTES = {"FLOAT64": 8, "FLOAT32": 4, "INT64": 8, "INT32": 4, "UINT8": 1, "INT8": 1, "BOOL": 1}

# Of Config: what asks for another machine, and what tunes Paddle's own library.
_ELSEWHERE = ("enable_use_gpu", "enable_tensorrt_engine", "enable_xpu", "enable_custom_device", "enable_ipu")
_TUNING = (
    "delete_pass", "disable_glog_info", "disable_gpu", "disable_mkldnn", "enable_memory_optim",
    "enable_mkldnn", "enable_mkldnn_bfloat16", "enable_mkldnn_int8", "enable_profile", "exp_disable_mkldnn",
    "set_cpu_math_library_num_threads", "set_mkldnn_cache_capacity", "set_mkldnn_op", "set_optim_cache_dir",
    "switch_ir_debug", "switch_ir_optim", "switch_specify_input_names", "switch_use_feed_fetch_ops",
)  # fmt: skip


class Config:
    """Which model: Config(MODEL.pdmodel, MODEL.pdiparams), a prefix, or a folder with one model. The calls
    that tune Paddle's library are accepted; those that ask for a GPU too, with a warning."""

    def __init__(self, prog_file: str | None = None, params_file: str | None = None) -> None:
        self._prefix = ""
        if prog_file is not None:
            self.set_model(prog_file, params_file)

    def set_model(self, prog_file: str, params_file: str | None = None) -> None:
        """Takes the model's files. Throws: Error(config) for a folder without a model, or with several."""
        path = os.fspath(prog_file)
        if os.path.isdir(path):
            found = sorted(name for name in os.listdir(path) if name.endswith(".pdmodel"))
            if len(found) != 1:
                raise Error(
                    "config",
                    f"paddle.inference.Config({path!r}): the folder has {len(found)} files *.pdmodel",
                    "give the .pdmodel and the .pdiparams of one model",
                )
            path = os.path.join(path, found[0])
        self._prefix = path.removesuffix(".pdmodel")
        if params_file is not None and os.fspath(params_file).removesuffix(".pdiparams") != self._prefix:
            raise Error(
                "config",
                f"paddle.inference.Config({path!r}, {os.fspath(params_file)!r}): two models",
                "give the .pdmodel and the .pdiparams of one model",
            )

    def prog_file(self) -> str:
        """The path of the program."""
        return self._prefix + ".pdmodel"

    def params_file(self) -> str:
        """The path of the parameters."""
        return self._prefix + ".pdiparams"

    def model_dir(self) -> str:
        """The folder of the model."""
        return os.path.dirname(self._prefix)

    def use_gpu(self) -> bool:
        """False."""
        return False

    def summary(self) -> str:
        """The model's path."""
        return f"model: {self._prefix}, device: cpu"

    def __getattr__(self, name: str) -> Any:
        if name in _ELSEWHERE:
            warn_once(
                f"inference {name}", f"paddle.inference.Config.{name} has no effect: it runs on the CPU"
            )
        elif name not in _TUNING:
            raise AttributeError(_lazy.missing("paddle.inference.Config", name, [*_ELSEWHERE, *_TUNING]))
        return lambda *arguments, **named: None


class Tensor:
    """The handle of an input or output of a predictor."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._array: Any = None
        self._offsets: list[int] = []

    def name(self) -> str:
        """Its name."""
        return self._name

    def reshape(self, shape: Any) -> None:
        """Accepted: copy_from_cpu() brings the shape."""

    def copy_from_cpu(self, data: Any) -> None:
        """Takes an array."""
        self._array = numpy.ascontiguousarray(data)

    share_external_data = copy_from_cpu

    def set_lod(self, lod: list[list[int]]) -> None:
        """Takes [offsets] of its sequences."""
        self._offsets = list(lod[0]) if lod else []

    def lod(self) -> list[list[int]]:
        """[offsets] of its sequences, or []."""
        return [self._offsets] if self._offsets else []

    def copy_to_cpu(self) -> numpy.ndarray:
        """The array. Throws: Error(config) before it has one."""
        if self._array is None:
            raise Error(
                "config", f"paddle.inference: {self._name} has no value", "call predictor.run() first"
            )
        return numpy.array(self._array)

    def shape(self) -> list[int]:
        """Sizes of the array; [] before it has one."""
        return [] if self._array is None else list(self._array.shape)

    def type(self) -> DataType:
        """The array's type."""
        return DataType[str(self.copy_to_cpu().dtype).upper()]


class Predictor:
    """A loaded model."""

    def __init__(self, config: Config) -> None:
        from fleetrun.static import io
        from fleetrun.static.executor import Executor

        self._executor, self._scope = Executor(), framework.Scope()
        with framework.scope_guard(self._scope):
            self._program, feeds, fetches = io.load_inference_model(config._prefix, self._executor)
        self._inputs = {name: Tensor(name) for name in feeds}
        self._fetches = [one.name for one in fetches]
        self._outputs = {name: Tensor(name) for name in self._fetches}

    def get_input_names(self) -> list[str]:
        """The names of what is fed."""
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        """The names of what is computed."""
        return list(self._outputs)

    def get_input_handle(self, name: str) -> Tensor:
        """The handle of an input. Throws: KeyError."""
        return self._inputs[name]

    def get_output_handle(self, name: str) -> Tensor:
        """The handle of an output. Throws: KeyError."""
        return self._outputs[name]

    def run(self, inputs: Any = None) -> Any:
        """Computes the outputs of what the inputs hold; of a list of arrays, in the order of the names, and
        returns a list then."""
        from fleetrun.lod_tensor import LoDTensor

        for handle, array in zip(self._inputs.values(), inputs or ()):
            handle.copy_from_cpu(array)
        feed = {
            name: LoDTensor(handle.copy_to_cpu(), handle._offsets)
            if handle._offsets
            else handle.copy_to_cpu()
            for name, handle in self._inputs.items()
        }
        found = self._executor.run(self._program, feed, self._fetches, scope=self._scope, return_numpy=False)
        for name, value in zip(self._fetches, found):
            self._outputs[name]._array = value.array
            self._outputs[name]._offsets = list(value.lod_offsets)
        return [numpy.array(value.array) for value in found] if inputs is not None else True

    def clone(self) -> Predictor:
        """A predictor with handles of its own; the parameters are shared."""
        other = object.__new__(Predictor)
        vars(other).update(vars(self))
        other._inputs = {name: Tensor(name) for name in self._inputs}
        other._outputs = {name: Tensor(name) for name in self._outputs}
        return other

    def clear_intermediate_tensor(self) -> None:
        """Nothing: memory is used again by the next run."""

    def try_shrink_memory(self) -> int:
        """0: nothing is given back."""
        return 0


def create_predictor(config: Config) -> Predictor:
    """The predictor of a Config. Throws: Error(data) for files that are missing or damaged."""
    return Predictor(config)


class PredictorPool:
    """`size` predictors with one model's parameters."""

    def __init__(self, config: Config, size: int) -> None:
        first = Predictor(config)
        self._predictors = [first, *(first.clone() for _ in range(size - 1))]

    def retrive(self, idx: int) -> Predictor:
        """Predictor idx; spelt as in Paddle."""
        return self._predictors[idx]


def get_version() -> str:
    """The version of Paddle whose names these are."""
    return "version: 2.6.2"


def get_num_bytes_of_data_type(dtype: DataType) -> int:
    """Bytes of one value."""
    return _BYTES[dtype.name]


__getattr__, __dir__ = _lazy.attach(__name__)

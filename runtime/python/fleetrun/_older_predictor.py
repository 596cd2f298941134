"""The predictor of Paddle 1.x, as scripts take it from fluid.core: create_paddle_predictor(AnalysisConfig()),
asked with lists of PaddleTensor, or by handles and zero_copy_run(). It is that of paddle.inference."""

from __future__ import annotations

import enum
from typing import Any

import numpy

from fleetrun import inference
from fleetrun._error import Error

__all__ = [
    "AnalysisConfig", "create_paddle_predictor", "NativeConfig", "PaddleBuf", "PaddleDType",
    "PaddlePredictor", "PaddleTensor",
]  # fmt: skip


class PaddleDType(enum.Enum):
    """Types of the values of a PaddleTensor."""

    FLOAT32 = 0
    INT64 = 1
    INT32 = 2


class PaddleBuf:
    """Values one after the other, without their shape; of an array or a list, float or int."""

    def __init__(self, data: Any = ()) -> None:
        self.reset(data)

    def reset(self, data: Any) -> None:
        """Takes other values: floats become float32, ints stay int64 or int32."""
        values = numpy.asarray(data).reshape(-1)
        self._values = values.astype("float32") if values.dtype.kind == "f" else values

    def resize(self, length: int) -> None:
        """Has room for `length` bytes: zeros behind what is there."""
        values = numpy.zeros(length // self._values.itemsize, self._values.dtype)
        kept = self._values[: values.size]
        values[: kept.size] = kept
        self._values = values

    def empty(self) -> bool:
        """Whether there are no values."""
        return self._values.size == 0

    def length(self) -> int:
        """Bytes of the values."""
        return int(self._values.nbytes)

    def tolist(self, dtype: Any = None) -> list[Any]:
        """The values."""
        return list(self._values.tolist())

    float_data = int64_data = int32_data = tolist


class PaddleTensor:
    """An array with a name: `data` is a PaddleBuf, `shape` its sizes, `lod` [offsets] of sequences."""

    def __init__(
        self, data: Any = None, name: str = "", lod: list[list[int]] | None = None, copy: bool = True
    ) -> None:
        array = numpy.asarray(data if data is not None else numpy.zeros(0, "float32"))
        self.name = name
        self.lod: list[list[int]] = list(lod or [])
        self.shape: Any = list(array.shape)
        self.data: Any = PaddleBuf(array)
        self.dtype = PaddleDType[str(self.data._values.dtype).upper()]

    def as_ndarray(self) -> numpy.ndarray:
        """The array. Throws: ValueError, where the shape does not fit the values."""
        values = (self.data if isinstance(self.data, PaddleBuf) else PaddleBuf(self.data))._values
        return values.astype(self.dtype.name.lower()).reshape([int(size) for size in self.shape])


class AnalysisConfig(inference.Config):
    """Which model: AnalysisConfig(folder), or of the files of the program and of the parameters. It has the
    calls of paddle.inference.Config."""

    class Precision(enum.Enum):
        """How numbers are computed: Float32 here."""

        Float32 = 0
        Int8 = 1
        Half = 2

    _by_name = False

    def switch_specify_input_names(self, x: bool = True) -> None:
        """Whether tensors stand for the inputs of their names, and not for those of their places."""
        self._by_name = x

    def specify_input_name(self) -> bool:
        """What switch_specify_input_names() said."""
        return self._by_name

    def set_model(self, prog_file: str, params_file: str | None = None) -> None:
        """Takes the model's folder or its files; the parameters lie beside the program, whatever
        fluid.io.save_inference_model was told to call them. Throws: Error(config)."""
        super().set_model(prog_file)


NativeConfig = AnalysisConfig


class PaddlePredictor(inference.Predictor):
    """A loaded model."""

    def __init__(self, config: AnalysisConfig) -> None:
        super().__init__(config)
        self._by_name = config.specify_input_name()

    def run(self, inputs: Any = None) -> Any:
        """A PaddleTensor for each output, of those of the inputs in the order of get_input_names(), or by
        their names after switch_specify_input_names(). Throws: Error(config), where inputs are missing."""
        names = [one.name for one in inputs] if self._by_name else self.get_input_names()
        if len(inputs) != len(self._inputs) or sorted(names) != sorted(self._inputs):
            raise Error(
                "config",
                f"predictor.run() of {len(inputs)} tensors ({', '.join(one.name for one in inputs)})",
                f"give one for each of {', '.join(self._inputs)}",
            )
        for name, tensor in zip(names, inputs):
            handle = self.get_input_handle(name)
            handle.copy_from_cpu(tensor.as_ndarray())
            handle.set_lod(tensor.lod)
        super().run()
        return [
            PaddleTensor(handle.copy_to_cpu(), name, handle.lod()) for name, handle in self._outputs.items()
        ]

    def zero_copy_run(self) -> bool:
        """Computes the outputs of what the inputs' handles hold."""
        return bool(super().run())

    def get_input_tensor(self, name: str) -> inference.Tensor:
        """The handle of an input. Throws: KeyError."""
        return self.get_input_handle(name)

    def get_output_tensor(self, name: str) -> inference.Tensor:
        """The handle of an output. Throws: KeyError."""
        return self.get_output_handle(name)

    def get_input_tensor_shape(self) -> dict[str, list[int]]:
        """{input: sizes}; -1 for one that is known only when the program runs."""
        return {name: list(self._program.var(name).shape) for name in self.get_input_names()}

    def clone(self) -> PaddlePredictor:
        """A predictor with handles of its own; the parameters are shared."""
        other = object.__new__(PaddlePredictor)
        vars(other).update(vars(super().clone()))
        return other


def create_paddle_predictor(config: AnalysisConfig) -> PaddlePredictor:
    """The predictor of a config. Throws: Error(data) for files that are missing or damaged."""
    return PaddlePredictor(config)

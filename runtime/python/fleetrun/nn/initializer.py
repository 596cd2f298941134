"""First values of parameters. Each initializer appends one operator to the start-up program.

Fans: a matrix [in, out] has fan_in = in and fan_out = out; a bias [n] has n for both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fleetrun import _lazy
from fleetrun._error import Error

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "Assign", "Bilinear", "calculate_gain", "Constant", "Dirac", "Initializer", "KaimingNormal",
    "KaimingUniform", "Normal", "set_global_initializer", "TruncatedNormal", "Uniform", "XavierNormal",
    "XavierUniform",
]  # fmt: skip


# Those of set_global_initializer, of weights and of biases.
_everywhere: dict[bool, Initializer | None] = {False: None, True: None}


def set_global_initializer(weight_init: Initializer | None, bias_init: Initializer | None = None) -> None:
    """First values of the weights and biases of all layers that are made from now on, and whose ParamAttr has
    no initializer; None: those of each layer again. Throws: Error(config) for what is no initializer."""
    for given in (weight_init, bias_init):
        if not isinstance(given, (Initializer, type(None))):
            raise Error("config", f"set_global_initializer({given!r}) is not an initializer")
    _everywhere.update({False: weight_init, True: bias_init})


def of_layer(is_bias: bool, own: Initializer | None) -> Initializer:
    """The first values of a layer's parameter: those of all layers, else its `own`, else Paddle's default."""
    default = Constant(0.0) if is_bias else XavierUniform()
    return _everywhere[bool(is_bias)] or own or default


class Initializer:
    """Base of all initializers."""

    # Of random numbers; 0: the program's.
    seed = 0

    def append(self, program: Any, name: str, shape: Sequence[int], dtype: str = "float32") -> None:
        """Appends the operator that fills `name` to the start-up program `program`."""
        operator, attributes = self.operator(shape)
        if self.seed:
            attributes["seed"] = self.seed
        program.native.append(operator, [], [name], {"shape": list(shape), "dtype": dtype, **attributes})

    def seeded(self, seed: int) -> Initializer:
        """Itself, its random numbers those of this seed."""
        self.seed = int(seed)
        return self

    def operator(self, shape: Sequence[int]) -> tuple[str, dict[str, Any]]:
        """(operator, attributes) for a parameter of `shape`."""
        raise NotImplementedError(type(self).__name__)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"


class Constant(Initializer):
    """Every value is `value`."""

    def __init__(self, value: float = 0.0) -> None:
        self.value = float(value)

    def operator(self, shape: Sequence[int]) -> tuple[str, dict[str, Any]]:
        return "fill_constant", {"value": self.value}


class Uniform(Initializer):
    """Uniform in [low, high)."""

    def __init__(self, low: float = -1.0, high: float = 1.0, name: str | None = None) -> None:
        if not low <= high:
            raise Error("config", f"paddle.nn.initializer.Uniform: low={low} is above high={high}")
        self.low = float(low)
        self.high = float(high)

    def operator(self, shape: Sequence[int]) -> tuple[str, dict[str, Any]]:
        return "uniform_random", {"min": self.low, "max": self.high}


class Normal(Initializer):
    """Normal with this mean and standard deviation."""

    def __init__(self, mean: float = 0.0, std: float = 1.0, name: str | None = None) -> None:
        self.mean = float(mean)
        self.std = float(std)

    def operator(self, shape: Sequence[int]) -> tuple[str, dict[str, Any]]:
        return "gaussian_random", {"mean": self.mean, "std": self.std}


class TruncatedNormal(Normal):
    """Normal, drawn again beyond two standard deviations."""

    def operator(self, shape: Sequence[int]) -> tuple[str, dict[str, Any]]:
        return "truncated_gaussian_random", {"mean": self.mean, "std": self.std}


def _fans(shape):
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    receptive = math.prod(shape[2:])
    if len(shape) == 2:
        return shape[0], shape[1]
    return shape[1] * receptive, shape[0] * receptive


class XavierUniform(Initializer):
    """Uniform within ±sqrt(6 / (fan_in + fan_out)). Source: Glorot and Bengio, 2010."""

    def __init__(
        self, fan_in: float | None = None, fan_out: float | None = None, name: str | None = None
    ) -> None:
        self.fan_in = fan_in
        self.fan_out = fan_out

    def _sum(self, shape):
        fan_in, fan_out = _fans(shape)
        return (fan_in if self.fan_in is None else self.fan_in) + (
            fan_out if self.fan_out is None else self.fan_out
        )

    def operator(self, shape: Sequence[int]) -> tuple[str, dict[str, Any]]:
        limit = math.sqrt(6.0 / self._sum(shape))
        return "uniform_random", {"min": -limit, "max": limit}


class XavierNormal(XavierUniform):
    """Normal with a standard deviation of sqrt(2 / (fan_in + fan_out))."""

    def operator(self, shape: Sequence[int]) -> tuple[str, dict[str, Any]]:
        return "gaussian_random", {"mean": 0.0, "std": math.sqrt(2.0 / self._sum(shape))}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps the variance through this nonlinearity. Source: He et al., 2015; Klambauer et
    al., 2017."""
    gains = {
        "tanh": 5.0 / 3.0,
        "relu": math.sqrt(2.0),
        "selu": 3.0 / 4.0,
        "leaky_relu": math.sqrt(2.0 / (1.0 + (0.01 if param is None else float(param)) ** 2)),
    }
    plain = (
        "sigmoid",
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv1d_transpose",
        "conv_transpose1d",
        "conv2d_transpose",
        "conv_transpose2d",
        "conv3d_transpose",
        "conv_transpose3d",
    )
    if nonlinearity in plain:
        return 1.0
    if nonlinearity not in gains:
        raise Error(
            "config",
            f"paddle.nn.initializer: no gain is known for nonlinearity={nonlinearity!r}",
            f"use one of {', '.join([*gains, *plain[:5]])}",
        )
    return gains[nonlinearity]


class KaimingUniform(Initializer):
    """Uniform within ±gain * sqrt(3 / fan_in). Source: He et al., 2015."""

    def __init__(
        self, fan_in: float | None = None, negative_slope: float = 0.0, nonlinearity: str = "relu"
    ) -> None:
        self.fan_in = fan_in
        self.negative_slope = negative_slope
        self.nonlinearity = nonlinearity
        calculate_gain(nonlinearity, negative_slope)

    def _deviation(self, shape):
        fan_in = _fans(shape)[0] if self.fan_in is None else self.fan_in
        return calculate_gain(self.nonlinearity, self.negative_slope) / math.sqrt(fan_in)

    def operator(self, shape: Sequence[int]) -> tuple[str, dict[str, Any]]:
        limit = math.sqrt(3.0) * self._deviation(shape)
        return "uniform_random", {"min": -limit, "max": limit}


class KaimingNormal(KaimingUniform):
    """Normal with a standard deviation of gain / sqrt(fan_in)."""

    def operator(self, shape: Sequence[int]) -> tuple[str, dict[str, Any]]:
        return "gaussian_random", {"mean": 0.0, "std": self._deviation(shape)}


class Assign(Initializer):
    """The values of an array, list or tuple. A sparse table refuses it: its rows are made one by one, without
    end."""

    def __init__(self, value: ArrayLike, name: str | None = None) -> None:
        import numpy

        array = numpy.asarray(value)
        if array.dtype.kind not in "fiub":
            raise Error("config", f"paddle.nn.initializer.Assign({value!r}) is not an array of numbers")
        self.value = array

    def operator(self, shape: Sequence[int]) -> tuple[str, dict[str, Any]]:
        if self.value.size != math.prod(shape):
            raise Error(
                "config",
                f"paddle.nn.initializer.Assign: {self.value.size} values for the shape {list(shape)}",
            )
        return "assign_value", {"values": [float(value) for value in self.value.ravel()]}


class Bilinear(Initializer):
    """Of a filter [.., .., k, k] of a transposed convolution, which enlarges by interpolation then."""

    def __init__(self, name: str | None = None) -> None:
        pass

    def operator(self, shape: Sequence[int]) -> tuple[str, dict[str, Any]]:
        if len(shape) != 4 or shape[2] != shape[3]:
            raise Error("config", f"paddle.nn.initializer.Bilinear for the shape {list(shape)}",
                        "it is for filters [.., .., k, k]")  # fmt: skip
        half = math.ceil(shape[3] / 2.0)
        middle = (2 * half - 1 - half % 2) / (2.0 * half)
        along = [1 - abs(i / half - middle) for i in range(shape[3])]
        picture = [one * other for one in along for other in along]
        return "assign_value", {"values": picture * (shape[0] * shape[1])}


class Dirac(Initializer):
    """Of a filter [out, in, ..] of a convolution, which gives its first channels as they came in; in `groups`
    parts of `out`."""

    def __init__(self, groups: int = 1, name: str | None = None) -> None:
        if not isinstance(groups, int) or groups < 1:
            raise Error("config", f"paddle.nn.initializer.Dirac(groups={groups!r})", "it is 1 or more")
        self.groups = groups

    def operator(self, shape: Sequence[int]) -> tuple[str, dict[str, Any]]:
        if not 3 <= len(shape) <= 5 or shape[0] % self.groups:
            raise Error("config", f"{self!r} for the shape {list(shape)}",
                        "it is for filters of 3 to 5 axes, the first a multiple of groups")  # fmt: skip
        inside, values = math.prod(shape[2:]), [0.0] * math.prod(shape)
        middle = 0
        for size in shape[2:]:
            middle = middle * size + size // 2
        part = shape[0] // self.groups
        for i in range(min(part, shape[1])):
            for group in range(self.groups):
                values[((group * part + i) * shape[1] + i) * inside + middle] = 1.0
        return "assign_value", {"values": values}


__getattr__, __dir__ = _lazy.attach(__name__)

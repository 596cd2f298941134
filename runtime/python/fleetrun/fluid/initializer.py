"""paddle.fluid.initializer: initial values under the names and arguments of Paddle 1.x."""

from __future__ import annotations

import contextlib

from fleetrun import _lazy
from fleetrun._arguments import refuse
from fleetrun._types import ArrayLike
from fleetrun.nn import initializer
from fleetrun.nn.initializer import Initializer, set_global_initializer

__all__ = [
    "Bilinear", "BilinearInitializer", "Constant", "ConstantInitializer", "force_init_on_cpu", "init_on_cpu",
    "Initializer", "MSRA", "MSRAInitializer", "Normal",
    "NormalInitializer", "NumpyArrayInitializer", "set_global_initializer", "TruncatedNormal",
    "TruncatedNormalInitializer", "Uniform", "UniformInitializer", "Xavier", "XavierInitializer",
]  # fmt: skip


def init_on_cpu() -> contextlib.AbstractContextManager[None]:
    """Accepted: first values are made on the CPU."""
    return contextlib.nullcontext()


def force_init_on_cpu() -> bool:
    """Whether init_on_cpu() holds; as in Paddle 1.x by default, it does not."""
    return False


def ConstantInitializer(value: float = 0.0, force_cpu: bool = False) -> Initializer:
    """Every value is `value`."""
    return initializer.Constant(value)


def UniformInitializer(
    low: float = -1.0, high: float = 1.0, seed: int = 0, diag_num: int = 0, diag_step: int = 0,
    diag_val: float = 1.0,
) -> Initializer:  # fmt: skip
    """Uniform in [low, high)."""
    refuse("fluid.initializer.Uniform", diag_num=(diag_num, 0))
    return initializer.Uniform(low, high).seeded(seed)


def NormalInitializer(loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> Initializer:
    """Normal with the mean `loc` and the deviation `scale`."""
    return initializer.Normal(loc, scale).seeded(seed)


def TruncatedNormalInitializer(loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> Initializer:
    """Normal, drawn again beyond two deviations."""
    return initializer.TruncatedNormal(loc, scale).seeded(seed)


def XavierInitializer(
    uniform: bool = True, fan_in: float | None = None, fan_out: float | None = None, seed: int = 0
) -> Initializer:
    """XavierUniform, or XavierNormal."""
    kind = initializer.XavierUniform if uniform else initializer.XavierNormal
    return kind(fan_in, fan_out).seeded(seed)


def MSRAInitializer(uniform: bool = True, fan_in: float | None = None, seed: int = 0) -> Initializer:
    """KaimingUniform, or KaimingNormal."""
    kind = initializer.KaimingUniform if uniform else initializer.KaimingNormal
    return kind(fan_in).seeded(seed)


def NumpyArrayInitializer(value: ArrayLike) -> Initializer:
    """The values of an array."""
    return initializer.Assign(value)


Bilinear = BilinearInitializer = initializer.Bilinear
Constant = ConstantInitializer
Uniform = UniformInitializer
Normal = NormalInitializer
TruncatedNormal = TruncatedNormalInitializer
Xavier = XavierInitializer
MSRA = MSRAInitializer

__getattr__, __dir__ = _lazy.attach(__name__)

"""paddle.fluid.dygraph and the modules below it: what static scripts take of them. The other names of dynamic
mode may be imported and derived from, and are refused where they are called."""

from __future__ import annotations

from fleetrun import _lazy, _unusable
from fleetrun._types import Any

__all__ = ["declarative", "dygraph_to_static_func", "dygraph_to_static_output"]


def declarative(function: Any = None) -> Any:
    """The function: in static mode Paddle calls it as it is, too."""
    return function


dygraph_to_static_func = dygraph_to_static_output = declarative

_found, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.names("_mode", "no_grad enable_dygraph disable_dygraph"),
        "no_grad_": "_mode:no_grad",
        "enabled": "_mode:in_dynamic_mode",
        **_lazy.names("distributed.ranks", "ParallelEnv"),
        "Env": "distributed.ranks:ParallelEnv",
    },
)

# The public names of 1.5 to 1.8 that are not here as something else.
__getattr__ = _unusable.beside(
    _found,
    "paddle.fluid.dygraph",
    """
    BackwardStrategy BatchNorm BCELoss BilinearTensorProduct Conv2D Conv2DTranspose Conv3D Conv3DTranspose
    CosineDecay DataParallel Dropout Embedding ExponentialDecay FC GroupNorm GRUUnit InstanceNorm
    InverseTimeDecay L1Loss LambdaDecay Layer LayerList LayerNorm LayerObjectHelper LearningRateDecay Linear
    LinearLrWarmup MSELoss MultiStepDecay NaturalExpDecay NCE NLLLoss NoamDecay ParameterList PiecewiseDecay
    PolynomialDecay Pool2D PRelu ProgramTranslator ReduceLROnPlateau RowConv SequenceConv Sequential
    SpectralNorm StepDecay TracedLayer Tracer TreeConv disable_imperative enable_imperative grad guard
    load_dygraph load_persistables monkey_patch_math_varbase monkey_patch_varbase prepare_context
    save_dygraph save_persistables start_gperf_profiler stop_gperf_profiler to_variable
    """,
)

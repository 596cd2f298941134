"""paddle.distributed.fleet.meta_optimizers: Paddle's classes that rewrite programs. They may be imported,
which scripts do beside what they use; a program is not rewritten here, DistributedStrategy says how it is
trained."""

from __future__ import annotations

from fleetrun import _lazy
from fleetrun._error import Error
from fleetrun._types import Any

_NAMES = (
    "AMPOptimizer ASPOptimizer AdaptiveLocalSGDOptimizer DGCMomentumOptimizer DGCOptimizer "
    "DygraphShardingOptimizer FP16AllReduceOptimizer GradientMergeOptimizer HeterParallelOptimizer "
    "HybridParallelGradScaler HybridParallelOptimizer LambOptimizer LarsOptimizer LocalSGDOptimizer "
    "ParameterServerOptimizer PipelineOptimizer QATOptimizer RawProgramOptimizer RecomputeOptimizer "
    "ShardingOptimizer TensorParallelOptimizer"
)


class _Rewriter:
    def __init__(self, *arguments: Any, **named: Any) -> None:
        raise Error(
            "config",
            f"fleet.meta_optimizers.{type(self).__name__}: programs are not rewritten here",
            "use fleet.distributed_optimizer(optimizer, strategy): a DistributedStrategy says how to train",
        )


for _name in _NAMES.split():
    globals()[_name] = type(_name, (_Rewriter,), {"__doc__": "Refused when it is made."})

__getattr__, __dir__ = _lazy.attach(__name__)

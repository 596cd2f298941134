"""paddle.incubate.optimizer: averages of parameters (static/averages.py), and optimizers."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.names("static.averages", "LookAhead ModelAverage"),
        "GradientMergeOptimizer": "static.merged:GradientMergeOptimizer",
        "RecomputeOptimizer": "fluid.optimizer:RecomputeOptimizer",
        "LarsMomentumOptimizer": "optimizer.older:LarsMomentum",
    },
)

"""paddle.incubate.optimizer: averages of parameters (static/averages.py), and LarsMomentumOptimizer."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.names("static.averages", "LookAhead ModelAverage"),
        "LarsMomentumOptimizer": "optimizer.older:LarsMomentum",
    },
)

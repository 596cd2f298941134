# Written by scripts/python-stubs.
"""paddle.incubate.optimizer: averages of parameters (static/averages.py), and optimizers."""
from fleetrun.static.averages import LookAhead as LookAhead
from fleetrun.static.averages import ModelAverage as ModelAverage
from fleetrun.static.merged import GradientMergeOptimizer as GradientMergeOptimizer
from fleetrun.fluid.optimizer import RecomputeOptimizer as RecomputeOptimizer
from fleetrun.optimizer.older import LarsMomentum as LarsMomentumOptimizer
__all__ = ['LookAhead', 'ModelAverage', 'GradientMergeOptimizer', 'RecomputeOptimizer', 'LarsMomentumOptimizer']

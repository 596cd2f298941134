# Written by scripts/python-stubs.
"""paddle.incubate.optimizer: averages of parameters (static/averages.py), and two optimizers."""
from fleetrun.static.averages import LookAhead as LookAhead
from fleetrun.static.averages import ModelAverage as ModelAverage
from fleetrun.static.merged import GradientMergeOptimizer as GradientMergeOptimizer
from fleetrun.optimizer.older import LarsMomentum as LarsMomentumOptimizer
__all__ = ['LookAhead', 'ModelAverage', 'GradientMergeOptimizer', 'LarsMomentumOptimizer']

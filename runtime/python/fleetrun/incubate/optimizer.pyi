# Written by scripts/python-stubs.
"""paddle.incubate.optimizer: averages of parameters (static/averages.py), and LarsMomentumOptimizer."""
from fleetrun.static.averages import LookAhead as LookAhead
from fleetrun.static.averages import ModelAverage as ModelAverage
from fleetrun.optimizer.older import LarsMomentum as LarsMomentumOptimizer
__all__ = ['LookAhead', 'ModelAverage', 'LarsMomentumOptimizer']

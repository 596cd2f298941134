# Written by scripts/python-stubs.
"""paddle.incubate.optimizer: averages of parameters (static/averages.py)."""
from fleetrun.static.averages import LookAhead as LookAhead
from fleetrun.static.averages import ModelAverage as ModelAverage
__all__ = ['LookAhead', 'ModelAverage']

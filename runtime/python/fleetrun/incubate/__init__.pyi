# Written by scripts/python-stubs.
"""paddle.incubate: names and modules of Paddle that lie elsewhere here (_homes.py)."""
from fleetrun.incubate import optimizer as optimizer
from fleetrun.static.averages import LookAhead as LookAhead
from fleetrun.static.averages import ModelAverage as ModelAverage
__all__ = ['optimizer', 'LookAhead', 'ModelAverage']

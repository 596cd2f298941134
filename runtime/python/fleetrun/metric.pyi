# Written by scripts/python-stubs.
"""paddle.metric: what programs use of it."""
from fleetrun.static.metrics import accuracy as accuracy
__all__ = ['accuracy']

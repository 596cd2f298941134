# Written by scripts/python-stubs.
"""paddle.incubate."""
from fleetrun.incubate import distributed as distributed
__all__ = ['distributed']

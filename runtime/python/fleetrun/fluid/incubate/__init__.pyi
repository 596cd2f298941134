# Written by scripts/python-stubs.
"""paddle.fluid.incubate."""
from fleetrun.fluid.incubate import fleet as fleet
__all__ = ['fleet']

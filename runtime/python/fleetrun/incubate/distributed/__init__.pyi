# Written by scripts/python-stubs.
"""paddle.incubate.distributed."""
from fleetrun.incubate.distributed import fleet as fleet
__all__ = ['fleet']

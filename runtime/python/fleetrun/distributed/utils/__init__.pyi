# Written by scripts/python-stubs.
"""paddle.distributed.utils."""
from fleetrun.distributed.utils import launch_utils as launch_utils
__all__ = ['launch_utils']

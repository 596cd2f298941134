# Written by scripts/python-stubs.
"""paddle.utils: what scripts that build programs use of it."""
from fleetrun.utils import unique_name as unique_name
__all__ = ['unique_name']

# Written by scripts/python-stubs.
"""paddle.fluid.incubate.fleet.base."""
from fleetrun.fluid.incubate.fleet.base import role_maker as role_maker
__all__ = ['role_maker']

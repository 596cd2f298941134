# Written by scripts/python-stubs.
"""paddle.distributed.fleet.base: role_maker and util_factory's place in Paddle's tree."""
from fleetrun.distributed.fleet.base import role_maker as role_maker
__all__ = ['role_maker']

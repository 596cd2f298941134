# Written by scripts/python-stubs.
"""paddle.incubate.distributed.fleet.role_maker: today's role makers under their older module."""
from fleetrun.distributed.fleet._roles import UserDefinedRoleMaker as UserDefinedRoleMaker
from fleetrun.distributed.fleet._roles import PaddleCloudRoleMaker as PaddleCloudRoleMaker
from fleetrun.distributed.fleet._roles import Role as Role
from fleetrun.distributed.fleet._roles import RoleMakerBase as RoleMakerBase
__all__ = ['UserDefinedRoleMaker', 'PaddleCloudRoleMaker', 'Role', 'RoleMakerBase']

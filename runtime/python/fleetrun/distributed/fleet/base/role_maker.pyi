# Written by scripts/python-stubs.
"""paddle.distributed.fleet.base.role_maker. Source: document 002; those of Paddle 1.x: older_roles.py."""
from fleetrun.distributed.fleet._roles import PaddleCloudRoleMaker as PaddleCloudRoleMaker
from fleetrun.distributed.fleet._roles import Role as Role
from fleetrun.distributed.fleet._roles import RoleMakerBase as RoleMakerBase
from fleetrun.distributed.fleet._roles import UserDefinedRoleMaker as UserDefinedRoleMaker
from fleetrun.distributed.fleet.older_roles import GeneralRoleMaker as GeneralRoleMaker
from fleetrun.distributed.fleet.older_roles import UserDefinedCollectiveRoleMaker as UserDefinedCollectiveRoleMaker
__all__ = ['PaddleCloudRoleMaker', 'Role', 'RoleMakerBase', 'UserDefinedRoleMaker', 'GeneralRoleMaker', 'UserDefinedCollectiveRoleMaker']

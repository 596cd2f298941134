"""paddle.distributed.fleet.base.role_maker. Source: document 002; those of Paddle 1.x: older_roles.py."""

from fleetrun import _lazy
from fleetrun.distributed.fleet._roles import PaddleCloudRoleMaker, Role, RoleMakerBase, UserDefinedRoleMaker

__all__ = ["PaddleCloudRoleMaker", "Role", "RoleMakerBase", "UserDefinedRoleMaker"]

__getattr__, __dir__ = _lazy.attach(
    __name__, _lazy.names("distributed.fleet.older_roles", "GeneralRoleMaker UserDefinedCollectiveRoleMaker")
)

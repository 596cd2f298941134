"""paddle.distributed.fleet.base.role_maker. Source: document 002."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__, "paddle.distributed.fleet.base.role_maker",
    _lazy.names("distributed.fleet._roles", "UserDefinedRoleMaker PaddleCloudRoleMaker Role RoleMakerBase"))

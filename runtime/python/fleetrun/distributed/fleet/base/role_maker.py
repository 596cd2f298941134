"""paddle.distributed.fleet.base.role_maker. Source: document 002."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    _lazy.ROLES,
)

"""paddle.incubate.distributed.fleet.role_maker: today's role makers under their older module."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    _lazy.ROLES,
)

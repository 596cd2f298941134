"""paddle.distributed.fleet.base: role_maker and util_factory's place in Paddle's tree."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(__name__, {"role_maker": "distributed.fleet.base.role_maker"})

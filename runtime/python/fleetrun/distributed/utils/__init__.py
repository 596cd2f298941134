"""paddle.distributed.utils."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(__name__, {"launch_utils": "distributed.utils.launch_utils"})

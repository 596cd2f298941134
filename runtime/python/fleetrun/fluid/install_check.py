"""paddle.fluid.install_check."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(__name__, {"run_check": "utils.install_check:run_check"})

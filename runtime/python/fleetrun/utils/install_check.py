"""paddle.utils.run_check: whether what is installed works."""

from __future__ import annotations

from fleetrun import _lazy
from fleetrun._error import Error

__all__ = ["run_check"]


def run_check() -> None:
    """Trains a small program for two steps, and says that it works. Throws: what is wrong."""
    import numpy

    from fleetrun import framework, tensor
    from fleetrun.optimizer.optimizers import SGD
    from fleetrun.static import inputs, nn
    from fleetrun.static.executor import Executor

    main, startup, scope = framework.Program(), framework.Program(), framework.Scope()
    with framework.program_guard(main, startup), framework.unique_name_guard(), framework.scope_guard(scope):
        x = inputs.data("x", [None, 2], "float32")
        loss = tensor.mean(tensor.square(nn.fc(x, 1) - 1.0))
        SGD(learning_rate=0.1).minimize(loss)
        executor = Executor()
        executor.run(startup)
        feed = {"x": numpy.ones((4, 2), "float32")}
        first, second = (executor.run(main, feed=feed, fetch_list=[loss])[0] for _ in range(2))
    if not (numpy.isfinite(first) and second < first):
        raise Error("config", f"run_check: the loss went from {first} to {second}", "report it as a bug")
    print("fleetrun works: its engine trains on this host's CPU.")
    print("PaddlePaddle is installed successfully! Let's start deep learning with PaddlePaddle now.")


__getattr__, __dir__ = _lazy.attach(__name__)

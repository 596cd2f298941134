"""paddle.optimizer: SGD, Adagrad and Adam; the formulas are those of runtime/engine/optimizer.h."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(__name__, "paddle.optimizer",
                                    _lazy.names("optimizer.optimizers", "Optimizer SGD Adagrad Adam"))

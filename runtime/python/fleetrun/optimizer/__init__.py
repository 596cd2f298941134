"""paddle.optimizer: SGD, Momentum, Adagrad, Adam, Ftrl and RMSProp; the formulas are those of
runtime/engine/optimizer.h."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.names("optimizer.optimizers", "Optimizer SGD Momentum Adagrad Adam AdamW Ftrl RMSProp"),
        "lr": "optimizer.lr",
    },
)

"""paddle.optimizer: SGD, Momentum, Adagrad, Adam and others; the formulas are those of
runtime/engine/optimizer.h."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.names(
            "optimizer.optimizers",
            "Optimizer SGD Momentum Adagrad Adam AdamW Adamax Adadelta Lamb RMSProp",
        ),
        "Ftrl": "optimizer.older:Ftrl",
        "lr": "optimizer.lr",
    },
)

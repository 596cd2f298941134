"""paddle.fluid.io, paddle.fluid.reader: loaders under their older names."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(__name__, "paddle.fluid.io", {
    "DataLoader": "io.loader:DataLoader",
    "PyReader": "io.generator_loader:PyReader",
})

"""paddle.fluid.reader: the loaders of paddle.fluid.io."""

from fleetrun.fluid.io import __dir__, __getattr__  # noqa: F401

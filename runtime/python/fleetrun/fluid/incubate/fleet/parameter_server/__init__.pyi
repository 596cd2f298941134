# Written by scripts/python-stubs.
"""paddle.fluid.incubate.fleet.parameter_server."""
from fleetrun.fluid.incubate.fleet.parameter_server import distribute_transpiler as distribute_transpiler
__all__ = ['distribute_transpiler']

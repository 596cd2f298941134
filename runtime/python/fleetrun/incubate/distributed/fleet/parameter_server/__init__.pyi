# Written by scripts/python-stubs.
"""paddle.incubate.distributed.fleet.parameter_server."""
from fleetrun.incubate.distributed.fleet.parameter_server import distribute_transpiler as distribute_transpiler
__all__ = ['distribute_transpiler']

# Written by scripts/python-stubs.
"""paddle.fluid.incubate.fleet."""
from fleetrun.fluid.incubate.fleet import base as base
from fleetrun.fluid.incubate.fleet import parameter_server as parameter_server
__all__ = ['base', 'parameter_server']

# Written by scripts/python-stubs.
from fleetrun.fluid.incubate.fleet.parameter_server import distribute_transpiler as distribute_transpiler
from fleetrun.fluid.incubate.fleet.parameter_server import mode as mode
from fleetrun.fluid.incubate.fleet.parameter_server import pslib as pslib

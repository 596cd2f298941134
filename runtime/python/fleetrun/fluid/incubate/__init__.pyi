# Written by scripts/python-stubs.
from fleetrun.fluid.incubate import data_generator as data_generator
from fleetrun.fluid.incubate import fleet as fleet

# Written by scripts/python-stubs.
from fleetrun.distributed.fleet.data_generator import *

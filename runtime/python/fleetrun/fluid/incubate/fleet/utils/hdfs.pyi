# Written by scripts/python-stubs.
from fleetrun.distributed.fleet.utils.fs import *

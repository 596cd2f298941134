# Written by scripts/python-stubs.
from fleetrun.distributed.fleet.older_util import *

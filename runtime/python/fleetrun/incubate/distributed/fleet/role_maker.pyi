# Written by scripts/python-stubs.
from fleetrun.distributed.fleet.base.role_maker import *

# Written by scripts/python-stubs.
from fleetrun.incubate.distributed import fleet as fleet

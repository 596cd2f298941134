# Written by scripts/python-stubs.
from fleetrun.fluid.incubate.fleet.utils import hdfs as hdfs
from fleetrun.fluid.incubate.fleet.utils import fs as fs

# Written by scripts/python-stubs.
from fleetrun.fluid.incubate.fleet.utils import fleet_util as fleet_util
from fleetrun.fluid.incubate.fleet.utils import hdfs as hdfs
from fleetrun.fluid.incubate.fleet.utils import fs as fs

# Written by scripts/python-stubs.
from fleetrun.incubate.distributed.fleet.utils import fleet_util as fleet_util
from fleetrun.incubate.distributed.fleet.utils import hdfs as hdfs
from fleetrun.incubate.distributed.fleet.utils import fs as fs

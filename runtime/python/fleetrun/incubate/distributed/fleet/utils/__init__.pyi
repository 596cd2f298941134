# Written by scripts/python-stubs.
from fleetrun.incubate.distributed.fleet.utils import hdfs as hdfs
from fleetrun.incubate.distributed.fleet.utils import fs as fs

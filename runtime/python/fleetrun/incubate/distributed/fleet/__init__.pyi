# Written by scripts/python-stubs.
from fleetrun.incubate.distributed.fleet import collective as collective
from fleetrun.incubate.distributed.fleet import base as base
from fleetrun.incubate.distributed.fleet import role_maker as role_maker
from fleetrun.incubate.distributed.fleet import fleet_util as fleet_util
from fleetrun.incubate.distributed.fleet import parameter_server as parameter_server
from fleetrun.incubate.distributed.fleet import utils as utils

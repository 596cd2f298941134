# Written by scripts/python-stubs.
from fleetrun.fluid.incubate.fleet import collective as collective
from fleetrun.fluid.incubate.fleet import base as base
from fleetrun.fluid.incubate.fleet import role_maker as role_maker
from fleetrun.fluid.incubate.fleet import fleet_util as fleet_util
from fleetrun.fluid.incubate.fleet import parameter_server as parameter_server
from fleetrun.fluid.incubate.fleet import utils as utils

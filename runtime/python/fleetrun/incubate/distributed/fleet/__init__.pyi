# Written by scripts/python-stubs.
"""paddle.incubate.distributed.fleet."""
from fleetrun.incubate.distributed.fleet import parameter_server as parameter_server
from fleetrun.incubate.distributed.fleet import role_maker as role_maker
__all__ = ['parameter_server', 'role_maker']

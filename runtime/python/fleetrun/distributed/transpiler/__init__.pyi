# Written by scripts/python-stubs.
"""paddle.distributed.transpiler: the configuration of the older strategies."""
from fleetrun.distributed.fleet._configs import DistributeTranspilerConfig as DistributeTranspilerConfig
from fleetrun.distributed.fleet._configs import ServerRuntimeConfig as ServerRuntimeConfig
__all__ = ['DistributeTranspilerConfig', 'ServerRuntimeConfig']

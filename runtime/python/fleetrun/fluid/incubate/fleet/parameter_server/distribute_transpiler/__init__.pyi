# Written by scripts/python-stubs.
"""paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler: fleet and its strategies.

Source: document 000.
"""
from fleetrun.distributed.fleet._transpiler import fleet as fleet
from fleetrun.fluid.incubate.fleet.parameter_server.distribute_transpiler import distributed_strategy as distributed_strategy
from fleetrun.distributed.fleet._configs import DistributeTranspilerConfig as DistributeTranspilerConfig
from fleetrun.distributed.fleet._configs import TrainerRuntimeConfig as TrainerRuntimeConfig
from fleetrun.distributed.fleet._configs import ServerRuntimeConfig as ServerRuntimeConfig
from fleetrun.distributed.fleet._transpiler_strategy import StrategyFactory as StrategyFactory
from fleetrun.distributed.fleet._transpiler_strategy import DistributedStrategyFactory as DistributedStrategyFactory
from fleetrun.distributed.fleet._transpiler_strategy import SyncStrategy as SyncStrategy
from fleetrun.distributed.fleet._transpiler_strategy import AsyncStrategy as AsyncStrategy
from fleetrun.distributed.fleet._transpiler_strategy import HalfAsyncStrategy as HalfAsyncStrategy
from fleetrun.distributed.fleet._transpiler_strategy import GeoStrategy as GeoStrategy
__all__ = ['fleet', 'distributed_strategy', 'DistributeTranspilerConfig', 'TrainerRuntimeConfig', 'ServerRuntimeConfig', 'StrategyFactory', 'DistributedStrategyFactory', 'SyncStrategy', 'AsyncStrategy', 'HalfAsyncStrategy', 'GeoStrategy']

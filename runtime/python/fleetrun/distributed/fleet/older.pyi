# Written by scripts/python-stubs.
"""paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler and its distributed_strategy: fleet and
the strategies of Paddle 1.x. Source: document 000."""
from fleetrun.distributed.fleet._transpiler import fleet as fleet
from fleetrun.distributed.fleet import older as distributed_strategy
from fleetrun.distributed.fleet._transpiler_strategy import TranspilerStrategy as DistributedStrategy
from fleetrun.distributed.fleet._transpiler_strategy import StrategyFactory as StrategyFactory
from fleetrun.distributed.fleet._transpiler_strategy import DistributedStrategyFactory as DistributedStrategyFactory
from fleetrun.distributed.fleet._transpiler_strategy import SyncStrategy as SyncStrategy
from fleetrun.distributed.fleet._transpiler_strategy import AsyncStrategy as AsyncStrategy
from fleetrun.distributed.fleet._transpiler_strategy import HalfAsyncStrategy as HalfAsyncStrategy
from fleetrun.distributed.fleet._transpiler_strategy import GeoStrategy as GeoStrategy
from fleetrun.distributed.fleet._configs import DistributeTranspilerConfig as DistributeTranspilerConfig
from fleetrun.distributed.fleet._configs import TrainerRuntimeConfig as TrainerRuntimeConfig
from fleetrun.distributed.fleet._configs import ServerRuntimeConfig as ServerRuntimeConfig
__all__ = ['fleet', 'distributed_strategy', 'DistributedStrategy', 'StrategyFactory', 'DistributedStrategyFactory', 'SyncStrategy', 'AsyncStrategy', 'HalfAsyncStrategy', 'GeoStrategy', 'DistributeTranspilerConfig', 'TrainerRuntimeConfig', 'ServerRuntimeConfig']

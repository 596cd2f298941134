# Written by scripts/python-stubs.
"""paddle.distributed.fleet: one Fleet per process, its calls as functions of this module.

A pipe command takes MultiSlotDataGenerator from here, once per file, so nothing is loaded before it is used.
Source: documents 002 and 003.
"""
from fleetrun.distributed.fleet._fleet import the_fleet as _the_fleet
from fleetrun.distributed.fleet.data_generator import MultiSlotDataGenerator as MultiSlotDataGenerator
from fleetrun.distributed.fleet.data_generator import MultiSlotStringDataGenerator as MultiSlotStringDataGenerator
from fleetrun.distributed.fleet.data_generator import DataGenerator as DataGenerator
from fleetrun.distributed.fleet._roles import UserDefinedRoleMaker as UserDefinedRoleMaker
from fleetrun.distributed.fleet._roles import PaddleCloudRoleMaker as PaddleCloudRoleMaker
from fleetrun.distributed.fleet._roles import Role as Role
from fleetrun.distributed.dataset import DatasetBase as DatasetBase
from fleetrun.distributed.dataset import DatasetFactory as DatasetFactory
from fleetrun.distributed.dataset import FileInstantDataset as FileInstantDataset
from fleetrun.distributed.dataset import InMemoryDataset as InMemoryDataset
from fleetrun.distributed.dataset import QueueDataset as QueueDataset
from fleetrun.distributed.fleet._strategy import DistributedStrategy as DistributedStrategy
from fleetrun.distributed.fleet._fleet import Fleet as Fleet
from fleetrun.distributed.fleet._util import UtilBase as UtilBase
from fleetrun.distributed.fleet.log_util import get_log_level_code as get_log_level_code
from fleetrun.distributed.fleet.log_util import get_log_level_name as get_log_level_name
from fleetrun.distributed.fleet.log_util import set_log_level as set_log_level
from fleetrun.distributed.fleet import base as base
from fleetrun.distributed.fleet import data_generator as data_generator
from fleetrun.distributed.fleet import launch as launch
from fleetrun.distributed.fleet import log_util as log_util
from fleetrun.distributed.fleet import meta_optimizers as meta_optimizers
from fleetrun.distributed.fleet import metrics as metrics
from fleetrun.distributed.fleet import utils as utils
from fleetrun.distributed.fleet._fleet import the_fleet as fleet
init = _the_fleet.init
is_server = _the_fleet.is_server
is_worker = _the_fleet.is_worker
is_first_worker = _the_fleet.is_first_worker
init_server = _the_fleet.init_server
run_server = _the_fleet.run_server
init_worker = _the_fleet.init_worker
stop_worker = _the_fleet.stop_worker
worker_index = _the_fleet.worker_index
worker_num = _the_fleet.worker_num
server_index = _the_fleet.server_index
server_num = _the_fleet.server_num
worker_endpoints = _the_fleet.worker_endpoints
server_endpoints = _the_fleet.server_endpoints
local_rank = _the_fleet.local_rank
node_num = _the_fleet.node_num
is_coordinator = _the_fleet.is_coordinator
barrier_worker = _the_fleet.barrier_worker
distributed_model = _the_fleet.distributed_model
distributed_optimizer = _the_fleet.distributed_optimizer
distributed_scaler = _the_fleet.distributed_scaler
minimize = _the_fleet.minimize
save_persistables = _the_fleet.save_persistables
load_model = _the_fleet.load_model
save_inference_model = _the_fleet.save_inference_model
load_inference_model = _the_fleet.load_inference_model
save_dense_params = _the_fleet.save_dense_params
shrink = _the_fleet.shrink
save_one_table = _the_fleet.save_one_table
load_one_table = _the_fleet.load_one_table
save_cache_model = _the_fleet.save_cache_model
save_cache_table = _the_fleet.save_cache_table
check_save_pre_patch_done = _the_fleet.check_save_pre_patch_done
all_reduce = _the_fleet.all_reduce
util = _the_fleet.util
rank = _the_fleet.worker_index
nranks = _the_fleet.worker_num
world_size = _the_fleet.worker_num
__all__ = ['MultiSlotDataGenerator', 'MultiSlotStringDataGenerator', 'DataGenerator', 'UserDefinedRoleMaker', 'PaddleCloudRoleMaker', 'Role', 'DatasetBase', 'DatasetFactory', 'FileInstantDataset', 'InMemoryDataset', 'QueueDataset', 'DistributedStrategy', 'Fleet', 'UtilBase', 'get_log_level_code', 'get_log_level_name', 'set_log_level', 'base', 'data_generator', 'launch', 'log_util', 'meta_optimizers', 'metrics', 'utils', 'fleet', 'init', 'is_server', 'is_worker', 'is_first_worker', 'init_server', 'run_server', 'init_worker', 'stop_worker', 'worker_index', 'worker_num', 'server_index', 'server_num', 'worker_endpoints', 'server_endpoints', 'local_rank', 'node_num', 'is_coordinator', 'barrier_worker', 'distributed_model', 'distributed_optimizer', 'distributed_scaler', 'minimize', 'save_persistables', 'load_model', 'save_inference_model', 'load_inference_model', 'save_dense_params', 'shrink', 'save_one_table', 'load_one_table', 'save_cache_model', 'save_cache_table', 'check_save_pre_patch_done', 'all_reduce', 'util', 'rank', 'nranks', 'world_size']

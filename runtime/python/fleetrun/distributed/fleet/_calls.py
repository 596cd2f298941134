"""The Fleet of this process, and its calls as functions: what `fleet.NAME` gives."""

from fleetrun.distributed.fleet._fleet import the_fleet as _fleet

init = _fleet.init
is_server = _fleet.is_server
is_worker = _fleet.is_worker
is_first_worker = _fleet.is_first_worker
init_server = _fleet.init_server
run_server = _fleet.run_server
init_worker = _fleet.init_worker
stop_worker = _fleet.stop_worker
worker_index = _fleet.worker_index
worker_num = _fleet.worker_num
server_index = _fleet.server_index
server_num = _fleet.server_num
worker_endpoints = _fleet.worker_endpoints
server_endpoints = _fleet.server_endpoints
rank = _fleet.worker_index
nranks = _fleet.worker_num
local_rank = _fleet.local_rank
node_num = _fleet.node_num
is_coordinator = _fleet.is_coordinator
world_size = _fleet.worker_num
barrier_worker = _fleet.barrier_worker
distributed_model = _fleet.distributed_model
distributed_optimizer = _fleet.distributed_optimizer
distributed_scaler = _fleet.distributed_scaler
minimize = _fleet.minimize
save_persistables = _fleet.save_persistables
load_model = _fleet.load_model
save_inference_model = _fleet.save_inference_model
load_inference_model = _fleet.load_inference_model
save_dense_params = _fleet.save_dense_params
shrink = _fleet.shrink
save_one_table = _fleet.save_one_table
load_one_table = _fleet.load_one_table
save_cache_model = _fleet.save_cache_model
save_cache_table = _fleet.save_cache_table
check_save_pre_patch_done = _fleet.check_save_pre_patch_done
all_reduce = _fleet.all_reduce
util = _fleet.util

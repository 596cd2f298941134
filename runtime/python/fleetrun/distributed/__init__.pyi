# Written by scripts/python-stubs.
"""paddle.distributed: collective calls, datasets, ranks, and fleet."""
from fleetrun.distributed import fleet as fleet
from fleetrun.distributed import io as io
from fleetrun.distributed import transpiler as transpiler
from fleetrun.distributed.dataset import InMemoryDataset as InMemoryDataset
from fleetrun.distributed.dataset import QueueDataset as QueueDataset
from fleetrun.distributed.entries import CountFilterEntry as CountFilterEntry
from fleetrun.distributed.entries import ProbabilityEntry as ProbabilityEntry
from fleetrun.distributed.entries import ShowClickEntry as ShowClickEntry
from fleetrun.distributed.ranks import get_rank as get_rank
from fleetrun.distributed.ranks import get_world_size as get_world_size
from fleetrun.distributed.collectives import ReduceOp as ReduceOp
from fleetrun.distributed.collectives import all_gather as all_gather
from fleetrun.distributed.collectives import all_gather_object as all_gather_object
from fleetrun.distributed.collectives import all_reduce as all_reduce
from fleetrun.distributed.collectives import alltoall as alltoall
from fleetrun.distributed.collectives import alltoall_single as alltoall_single
from fleetrun.distributed.collectives import barrier as barrier
from fleetrun.distributed.collectives import broadcast as broadcast
from fleetrun.distributed.collectives import broadcast_object_list as broadcast_object_list
from fleetrun.distributed.collectives import destroy_process_group as destroy_process_group
from fleetrun.distributed.collectives import get_backend as get_backend
from fleetrun.distributed.collectives import get_group as get_group
from fleetrun.distributed.collectives import init_parallel_env as init_parallel_env
from fleetrun.distributed.collectives import irecv as irecv
from fleetrun.distributed.collectives import is_available as is_available
from fleetrun.distributed.collectives import is_initialized as is_initialized
from fleetrun.distributed.collectives import isend as isend
from fleetrun.distributed.collectives import new_group as new_group
from fleetrun.distributed.collectives import recv as recv
from fleetrun.distributed.collectives import reduce as reduce
from fleetrun.distributed.collectives import reduce_scatter as reduce_scatter
from fleetrun.distributed.collectives import send as send
from fleetrun.distributed.collectives import wait as wait
__all__ = ['fleet', 'io', 'transpiler', 'InMemoryDataset', 'QueueDataset', 'CountFilterEntry', 'ProbabilityEntry', 'ShowClickEntry', 'get_rank', 'get_world_size', 'ReduceOp', 'all_gather', 'all_gather_object', 'all_reduce', 'alltoall', 'alltoall_single', 'barrier', 'broadcast', 'broadcast_object_list', 'destroy_process_group', 'get_backend', 'get_group', 'init_parallel_env', 'irecv', 'is_available', 'is_initialized', 'isend', 'new_group', 'recv', 'reduce', 'reduce_scatter', 'send', 'wait']

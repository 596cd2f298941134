"""paddle.distributed: collective calls, datasets, ranks, and fleet."""

import os as _os

from fleetrun import _lazy
from fleetrun.distributed import _outer_job

_outer_job.leave(_os.environ)  # before a module of this package reads it

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "fleet": "distributed.fleet",
        "io": "distributed.io",
        "parallel": "distributed.parallel",
        "transpiler": "distributed.transpiler",
        "utils": "distributed.utils",
        **_lazy.names("distributed.dataset", "InMemoryDataset QueueDataset"),
        **_lazy.names("distributed.entries", "CountFilterEntry ProbabilityEntry ShowClickEntry"),
        "recoverable": "distributed.parallel.recoverable:recoverable",
        **_lazy.names("distributed.ranks", "get_rank get_world_size ParallelEnv"),
        **_lazy.names(
            "distributed.collectives",
            "ReduceOp all_gather all_reduce alltoall alltoall_single barrier broadcast destroy_process_group "
            "gather get_backend get_group init_parallel_env is_available is_initialized new_group reduce "
            "reduce_scatter scatter wait",
        ),
        **_lazy.names(
            "distributed.objects",
            "all_gather_object broadcast_object_list gather_object scatter_object_list",
        ),
        **_lazy.names("distributed.messages", "P2POp batch_isend_irecv irecv isend recv send"),
    },
)

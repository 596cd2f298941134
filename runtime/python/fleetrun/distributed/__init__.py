"""paddle.distributed: collective calls, datasets, ranks, and fleet."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "fleet": "distributed.fleet",
        "io": "distributed.io",
        "transpiler": "distributed.transpiler",
        **_lazy.names("distributed.dataset", "InMemoryDataset QueueDataset"),
        **_lazy.names("distributed.entries", "CountFilterEntry ProbabilityEntry ShowClickEntry"),
        **_lazy.names("distributed.ranks", "get_rank get_world_size"),
        **_lazy.names(
            "distributed.collectives",
            "ReduceOp all_gather all_gather_object all_reduce alltoall alltoall_single barrier "
            "broadcast broadcast_object_list destroy_process_group get_backend get_group "
            "init_parallel_env irecv "
            "is_available is_initialized isend new_group recv reduce reduce_scatter send wait",
        ),
    },
)

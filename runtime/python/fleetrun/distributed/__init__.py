"""paddle.distributed: datasets, ranks, and fleet."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(__name__, "paddle.distributed", {
    "fleet": "distributed.fleet",
    "transpiler": "distributed.transpiler",
    **_lazy.names("distributed.dataset", "InMemoryDataset QueueDataset"),
    **_lazy.names("distributed.entries", "CountFilterEntry ProbabilityEntry ShowClickEntry"),
    **_lazy.names("distributed.ranks", "get_rank get_world_size"),
})

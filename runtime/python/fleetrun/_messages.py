"""paddle.base.proto and its like: Paddle's protobuf messages. Scripts import the modules beside what
they use, so these are there; of the messages only those of index_dataset_pb2 are."""

from fleetrun import _lazy
from fleetrun._decisions import table

_FILES = ("framework_pb2", "distributed_strategy_pb2")
_modules, __dir__ = _lazy.attach(
    __name__,
    {
        **{name: __name__.rpartition(".")[2] for name in _FILES},
        "index_dataset_pb2": "distributed.dataset._index_messages",
    },
)


def __getattr__(name: str) -> object:
    if name.endswith("_pb2"):
        return _modules(name)
    raise AttributeError(f"fleetrun has no message {name}: {table()[0]['internal']}")

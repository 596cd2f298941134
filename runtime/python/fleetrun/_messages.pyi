# Written by scripts/python-stubs.
"""paddle.base.proto and its like: Paddle's protobuf messages. Scripts import the modules beside what
they use, so these are there; of the messages only those of index_dataset_pb2 are."""
from fleetrun import _messages as framework_pb2
from fleetrun import _messages as distributed_strategy_pb2
from fleetrun.distributed.dataset import _index_messages as index_dataset_pb2
__all__ = ['framework_pb2', 'distributed_strategy_pb2', 'index_dataset_pb2']

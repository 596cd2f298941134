"""paddle.incubate.layers, fluid.contrib.layers of Paddle 1.x: layers of ranking models."""

from __future__ import annotations

from fleetrun import _lazy, tensor
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun._types import Any, DTypeLike, ParamLike, Sequence, Variable
from fleetrun.static import nn
from fleetrun.static.sequence_lod import sequence_pool
from fleetrun.static.sequences import lengths_of, with_lengths

__all__ = ["fused_embedding_seq_pool", "partial_concat", "partial_sum", "shuffle_batch"]


def fused_embedding_seq_pool(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    padding_idx: int | None = None,
    combiner: str = "sum",
    param_attr: ParamLike = None,
    dtype: DTypeLike = "float32",
) -> Variable:
    """The sums of the rows that each sequence of ids looks up. Shape: input[total, 1] with lod_level 1 ->
    [n, width]."""
    refuse("fused_embedding_seq_pool", combiner=(combiner, "sum"))
    rows = nn.embedding(input, size, is_sparse, False, padding_idx, param_attr, dtype)
    return sequence_pool(tensor.reshape(rows, [-1, int(size[1])]), "sum")


def partial_concat(input: Sequence[Variable], start_index: int = 0, length: int = -1) -> Variable:
    """The same columns of all inputs, side by side: `length` from start_index on, all that follow for -1."""
    return tensor.concat([_columns(one, start_index, length) for one in input], 1)


def partial_sum(input: Sequence[Variable], start_index: int = 0, length: int = -1) -> Variable:
    """The same columns of all inputs, added up."""
    return tensor.add_n([_columns(one, start_index, length) for one in input])


def _columns(x, start, length):
    width = x.shape[1]
    first = start + width if start < 0 else start
    last = width if length < 0 else first + length
    if x.ndim != 2 or not 0 <= first < last <= width:
        raise Error(
            "config",
            f"columns {start} to {last} of {x.name}, which has the shape {list(x.shape)}",
            "start_index and length lie within its columns",
        )
    return tensor.slice(x, [1], [first], [last])


def shuffle_batch(x: Variable, seed: Any = None) -> Variable:
    """The rows of x in an order that is another one in each run. Shape: that of x, whose last axis is a row;
    sequences keep their lengths. seed: a number; orders are others than Paddle's for the same one."""
    refuse("shuffle_batch", seed=("a variable", None) if isinstance(seed, Variable) else (None, None))
    width = x.shape[-1]
    if width < 1:
        raise Error(
            "config", f"shuffle_batch: {x.name} has the shape {list(x.shape)}", "its last size is known"
        )
    flat = x if x.ndim == 2 else tensor.reshape(x, [-1, width])
    keys = tensor.uniform(tensor.shape(flat)[:1], "float32", 0.0, 1.0, int(seed or 0))
    mixed = tensor.gather(flat, tensor.argsort(keys))
    mixed = mixed if x.ndim == 2 else tensor.reshape(mixed, [-1, *x.shape[1:]])
    return with_lengths(mixed, lengths_of(x, "shuffle_batch")) if x.lod_level else mixed


__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "ctr_metric_bundle": "static.metrics:ctr_metric_bundle",
        "index_sample": "tensor:index_sample",
        "sparse_embedding": "static.nn:sparse_embedding",
        **_lazy.names("fluid._stacked", "basic_gru basic_lstm BasicGRUUnit BasicLSTMUnit"),
        **_lazy.names("incubate.trees", "tdm_child tdm_sampler"),
    },
)

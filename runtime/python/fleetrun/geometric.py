"""paddle.geometric: rows brought together by the segment, or the node of a graph, that they belong to."""

from __future__ import annotations

from fleetrun import _lazy, framework, tensor
from fleetrun._error import Error
from fleetrun._types import Any, Variable
from fleetrun.static.sequences import Layout, flat_numbers, with_lengths

__all__ = [
    "segment_max", "segment_mean", "segment_min", "segment_sum", "send_u_recv", "send_ue_recv", "send_uv",
]  # fmt: skip


def segment_sum(data: Variable, segment_ids: Variable, name: str | None = None) -> Variable:
    """The sums of the rows of equal segment_ids [n], which rise; 0 for an id that is not there. Shape:
    data[n, ..] -> [the largest id + 1, ..]."""
    return _of_segments(data, segment_ids, "sum")


def segment_mean(data: Variable, segment_ids: Variable, name: str | None = None) -> Variable:
    """Their means; 0 where there are none. Shape: that of segment_sum."""
    return _of_segments(data, segment_ids, "mean")


def segment_max(data: Variable, segment_ids: Variable, name: str | None = None) -> Variable:
    """Their largest values; 0 where there are none. Shape: that of segment_sum."""
    return _of_segments(data, segment_ids, "max")


def segment_min(data: Variable, segment_ids: Variable, name: str | None = None) -> Variable:
    """Their least values; 0 where there are none. Shape: that of segment_sum."""
    return _of_segments(data, segment_ids, "min")


def send_u_recv(
    x: Variable,
    src_index: Variable,
    dst_index: Variable,
    reduce_op: str = "sum",
    out_size: Any = None,
    name: str | None = None,
) -> Variable:
    """What each node gets of the rows of x along the edges src_index -> dst_index: reduce_op is sum, mean,
    max or min, 0 where nothing comes. Shape: [out_size, those of x without an out_size, ..]."""
    return _received(tensor.gather(x, flat_numbers(src_index)), dst_index, reduce_op, _nodes(x, out_size))


def graph_send_recv(
    x: Variable,
    src_index: Variable,
    dst_index: Variable,
    pool_type: str = "sum",
    out_size: Any = None,
    name: str | None = None,
) -> Variable:
    """send_u_recv, as paddle.incubate has it."""
    return send_u_recv(x, src_index, dst_index, pool_type, out_size)


def send_ue_recv(
    x: Variable,
    y: Variable,
    src_index: Variable,
    dst_index: Variable,
    message_op: str = "add",
    reduce_op: str = "sum",
    out_size: Any = None,
    name: str | None = None,
) -> Variable:
    """send_u_recv of rows of x joined by message_op (add, sub, mul, div) with y, one row for each edge."""
    message = _joined(tensor.gather(x, flat_numbers(src_index)), y, message_op)
    return _received(message, dst_index, reduce_op, _nodes(x, out_size))


def send_uv(
    x: Variable,
    y: Variable,
    src_index: Variable,
    dst_index: Variable,
    message_op: str = "add",
    name: str | None = None,
) -> Variable:
    """For each edge the row of x at its source joined with the row of y at its end. Shape: [edges, ..]."""
    first = tensor.gather(x, flat_numbers(src_index))
    return _joined(first, tensor.gather(y, flat_numbers(dst_index)), message_op)


def _joined(x, y, message_op):
    known = {
        "add": tensor.add,
        "sub": tensor.subtract,
        "mul": tensor.multiply,
        "div": tensor.divide,
    }
    if message_op not in known:
        raise Error("config", f'message_op="{message_op}"', "use add, sub, mul or div")
    for _ in range(x.ndim - y.ndim):
        y = tensor.unsqueeze(y, -1)
    return known[message_op](x, y)


def _nodes(x, out_size):
    """How many rows there are to be, as a variable [1]."""
    if isinstance(out_size, Variable):
        return flat_numbers(out_size)
    if out_size is None or int(out_size) <= 0:
        return flat_numbers(tensor.slice(tensor.shape(x), [0], [0], [1]))
    return tensor.full([1], int(out_size), "int64")


def _received(message, dst_index, reduce_op, count):
    if reduce_op not in ("sum", "mean", "max", "min"):
        raise Error("config", f'reduce_op="{reduce_op}"', "use sum, mean, max or min")
    ends = flat_numbers(dst_index)
    order = tensor.argsort(ends)
    return _pooled(tensor.gather(message, order), ends, count, reduce_op)


def _of_segments(data, segment_ids, reduce_op):
    ids = flat_numbers(segment_ids)
    return _pooled(data, ids, tensor.reshape(tensor.max(ids) + 1, [1]), reduce_op)


def _pooled(rows, owners, count, reduce_op):
    """Rows in the order of their owners, of which there are `count`."""
    # Each owner once more, so that those without rows are counted too.
    once = tensor.concat([owners, tensor.arange(0, tensor.reshape(count, []), 1, "int64")], 0)
    lengths = tensor.unique(once, return_counts=True)[1] - 1
    flat = rows if rows.ndim == 2 else tensor.reshape(rows, [-1, _width(rows)])
    kind = {"sum": "sum", "mean": "average", "max": "max", "min": "max"}[reduce_op]
    pooled = _pool(-flat if reduce_op == "min" else flat, lengths, kind)
    if kind == "max":
        pooled = _with_slopes(-pooled if reduce_op == "min" else pooled, flat, lengths)
    return pooled if rows.ndim == 2 else tensor.reshape(pooled, [-1, *rows.shape[1:]])


def _pool(rows, lengths, kind):
    sequences = with_lengths(rows, lengths)
    return framework.append("sequence_pool", "sequence_pool", [sequences], {"pool_type": kind})


def _with_slopes(best, rows, lengths):
    """`best`, of which as in Paddle every row that equals it has the slope, and not one alone."""
    best.stop_gradient = True
    same = tensor.equal(rows, Layout(lengths).of_owner(best))
    still = tensor.assign(rows)
    still.stop_gradient = True
    # Infinite values have none: their difference is no number.
    counted = tensor.logical_and(same, tensor.isfinite(rows))
    moves = tensor.where(counted, rows - still, tensor.zeros_like(still))
    return best + _pool(moves, lengths, "sum")


def _width(rows):
    width = 1
    for size in rows.shape[1:]:
        width *= size
    if width < 1:
        raise Error(
            "config", f"{rows.name} has the shape {list(rows.shape)}", "all sizes but the first are known"
        )
    return width


__getattr__, __dir__ = _lazy.attach(__name__)

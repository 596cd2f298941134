"""paddle.static.nn.sequence_lod: layers over slots with any number of values per example.

Those but sequence_pool are composed of other operators; an example's values are a sequence, `n` sequences
have `total` rows. Results, also of sequences without rows, are those of Paddle 2.6.2.
"""

from __future__ import annotations

from fleetrun import _lazy, framework, tensor
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun._padding import constant_pad
from fleetrun._types import Any, ParamLike, Sequence, Variable
from fleetrun.nn import functional
from fleetrun.nn.functional import sequence_mask
from fleetrun.static import groups
from fleetrun.static.activated import activated
from fleetrun.static.sequences import Layout, context, flat_numbers, in_sequences, lengths_of, with_lengths

__all__ = [
    "lod_reset", "row_conv", "sequence_concat", "sequence_conv", "sequence_enumerate", "sequence_expand",
    "sequence_expand_as", "sequence_first_step", "sequence_last_step", "sequence_mask", "sequence_pad",
    "sequence_pool", "sequence_reshape", "sequence_reverse", "sequence_scatter", "sequence_slice",
    "sequence_softmax", "sequence_unpad",
]  # fmt: skip


def sequence_pool(input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0) -> Variable:
    """One row per example of a slot with any number of values: their sum, average, sqrt (sum / sqrt(n)), max,
    first or last; pad_value where there is none.

    Shape: input[total, width] with lod_level 1 -> [examples, width]. With lod_level 2 it is one row per
    sequence, and these are sequences.
    """
    kind = str(pool_type).lower()
    whole, input = input, in_sequences(input, "sequence_pool")
    if kind in ("first", "last"):
        pooled = _end(input, kind)
    else:
        pooled = framework.append("sequence_pool", "sequence_pool", [input], {"pool_type": kind})
    if pad_value:
        counts = tensor.reshape(lengths_of(input, "sequence_pool"), [-1] + [1] * (input.ndim - 1))
        pooled = tensor.where(counts > 0, pooled, tensor.full_like(pooled, pad_value))
    return groups.without_rows(pooled, whole)


def _end(input, kind):
    """The first or last row of each sequence, zeros where there is none."""
    lengths = lengths_of(input, f"sequence_{kind}_step")
    layout = Layout(lengths)
    at = layout.starts if kind == "first" else layout.starts + lengths - 1
    source = tensor.concat([input, tensor.zeros([1, *input.shape[1:]], input.dtype)], 0)
    nowhere = tensor.zeros_like(at) + layout.total
    return tensor.gather(source, tensor.where(lengths > 0, at, nowhere))


def sequence_first_step(input: Variable) -> Variable:
    """The first row of each sequence. Shape: input[total, ..] -> [n, ..]."""
    return groups.without_rows(_end(input, "first"), input)


def sequence_last_step(input: Variable) -> Variable:
    """The last row of each sequence. Shape: input[total, ..] -> [n, ..]."""
    return groups.without_rows(_end(input, "last"), input)


def sequence_softmax(input: Variable, use_cudnn: bool = False, name: str | None = None) -> Variable:
    """Each sequence's values as parts of 1: softmax over its rows. Shape: that of input, [total] or
    [total, 1]."""
    input = in_sequences(input, "sequence_softmax")
    layout = Layout(lengths_of(input, "sequence_softmax"))
    largest = framework.append("sequence_pool", "sequence_pool", [input], {"pool_type": "max"})
    largest.stop_gradient = True
    powers = tensor.exp(input - layout.of_owner(largest))
    sums = framework.append("sequence_pool", "sequence_pool", [powers], {"pool_type": "sum"})
    return powers / layout.of_owner(sums)


def sequence_concat(input: Sequence[Variable], name: str | None = None) -> Variable:
    """The i-th sequences of all inputs behind each other. Shape: [the sum of their totals, ..]."""
    lengths = [lengths_of(one, "sequence_concat") for one in input]
    layouts = [Layout(one) for one in lengths]
    total = tensor.add_n(lengths)
    before = Layout(total).starts
    places = []
    for layout in layouts:
        places.append(layout.of_owner(before) + layout.place)
        before = before + layout.lengths
    return with_lengths(
        tensor.gather(tensor.concat(list(input), 0), tensor.argsort(tensor.concat(places, 0))), total
    )


def sequence_slice(input: Variable, offset: Variable, length: Variable, name: str | None = None) -> Variable:
    """Of each sequence `length` rows from `offset` on. Shape: offset, length[n, 1] whole numbers."""
    layout = Layout(lengths_of(input, "sequence_slice"))
    first, count = flat_numbers(offset), flat_numbers(length)
    begin = layout.of_owner(first)
    kept = tensor.logical_and(layout.place >= begin, layout.place < begin + layout.of_owner(count))
    return with_lengths(tensor.gather(input, tensor.reshape(tensor.nonzero(kept), [-1])), count)


def sequence_expand(x: Variable, y: Variable, ref_level: int = -1, name: str | None = None) -> Variable:
    """The i-th row of x, or its i-th sequence, as often as the i-th sequence of y has rows.

    Rows of an x without sequences have those of y then. ref_level: the level of y that counts, -1 for the
    innermost: with lod_level 2 that is 1, and 0 counts the sequences of each group.
    """
    outer = groups.groups_of(y) if ref_level == 0 else None
    if ref_level not in (-1, 0) and (ref_level != 1 or groups.groups_of(y) is None):
        raise Error(
            "config",
            f"paddle.static.nn.sequence_expand(ref_level={ref_level}): {y.name} has {y.lod_level} levels",
            "give a level that it has, or -1 for the innermost",
        )
    times = lengths_of(y, "sequence_expand") if outer is None else outer
    if not x.lod_level:
        return with_lengths(tensor.gather(x, Layout(times).owner), times)
    lengths = lengths_of(x, "sequence_expand")
    source = Layout(times).owner
    layout = Layout(tensor.gather(lengths, source))
    rows = layout.of_owner(tensor.gather(Layout(lengths).starts, source)) + layout.place
    return with_lengths(tensor.gather(x, rows), layout.lengths)


def sequence_expand_as(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The i-th row of x as often as the i-th sequence of y has rows, as sequences like those of y."""
    times = lengths_of(y, "sequence_expand_as")
    return with_lengths(tensor.gather(x, Layout(times).owner), times)


def sequence_pad(
    x: Variable, pad_value: Variable, maxlen: int | None = None, name: str | None = None
) -> tuple[Variable, Variable]:
    """(sequences of one length, their own lengths): pad_value, one number or one row, behind the rows.

    maxlen: that length, at least the longest's; None for the longest's. Shape: x[total, ..] ->
    ([n, length, ..], [n] int64).
    """
    lengths = lengths_of(x, "sequence_pad")
    layout = Layout(lengths)
    row = tensor.expand(
        tensor.reshape(tensor.cast(pad_value, x.dtype), _row_of(pad_value, x)), [1, *x.shape[1:]]
    )
    known = maxlen is not None and maxlen > 0
    longest: Any = int(maxlen or 0) if known else tensor.max(lengths)
    places = tensor.reshape(tensor.arange(0, longest, 1), [1, -1])
    at = places + tensor.reshape(layout.starts, [-1, 1])
    nowhere = tensor.zeros_like(at) + layout.total
    index = tensor.where(places < tensor.reshape(lengths, [-1, 1]), at, nowhere)
    if known:
        # A longer sequence looks for rows that are not there, and the operator says so.
        index = index + tensor.cast(tensor.max(lengths) > longest, "int64") * (layout.total + 1)
    rows = tensor.gather(tensor.concat([x, row], 0), tensor.reshape(index, [-1]))
    shape = [-1, longest] if known else [tensor.shape(lengths)[0], longest]
    padded = tensor.reshape(rows, [*shape, *x.shape[1:]])
    lengths.stop_gradient = True
    return padded, lengths


def _row_of(pad_value, x):
    """The shape in which a pad_value is repeated to one row of x."""
    count = 1
    for size in pad_value.shape:
        count *= size
    return [1] * x.ndim if count == 1 else [1, *x.shape[1:]]


def sequence_unpad(x: Variable, length: Variable, name: str | None = None) -> Variable:
    """Of each row of x[n, most, ..] its first `length` [n] as a sequence. Shape: [total, ..]."""
    counts = flat_numbers(length)
    places = tensor.arange(0, tensor.shape(x)[1], 1)
    kept = tensor.reshape(places, [1, -1]) < tensor.reshape(counts, [-1, 1])
    flat = tensor.reshape(x, [-1, *x.shape[2:]])
    rows = tensor.reshape(tensor.nonzero(tensor.reshape(kept, [-1])), [-1])
    return with_lengths(tensor.gather(flat, rows), counts)


def sequence_reshape(input: Variable, new_dim: int) -> Variable:
    """The values of each sequence in rows of new_dim. Shape: input[total, width] -> [.., new_dim]."""
    width = input.shape[-1]
    lengths = lengths_of(input, "sequence_reshape") * width
    if width % new_dim and new_dim % width:
        raise Error(
            "config",
            f"paddle.static.nn.sequence_reshape: rows of {width} values as rows of {new_dim}",
            "one of the two is a multiple of the other",
        )
    return with_lengths(tensor.reshape(input, [-1, new_dim]), tensor.floor_divide(lengths, new_dim))


def sequence_reverse(x: Variable, name: str | None = None) -> Variable:
    """The rows of each sequence from its last to its first. Shape: that of x."""
    layout = Layout(lengths_of(x, "sequence_reverse"))
    rows = layout.of_owner(layout.starts + layout.lengths) - 1 - layout.place
    return with_lengths(tensor.gather(x, rows), layout.lengths)


def sequence_enumerate(
    input: Variable, win_size: int, pad_value: int = 0, name: str | None = None
) -> Variable:
    """For each id itself and the win_size - 1 behind it in its sequence, pad_value where there is none.
    Shape: input[total, 1] whole numbers -> [total, win_size]."""
    layout = Layout(lengths_of(input, "sequence_enumerate"))
    flat = tensor.reshape(input, [-1])
    pad = tensor.full([1], pad_value, input.dtype)
    return with_lengths(tensor.stack(context(flat, layout, 0, win_size, pad), 1), layout.lengths)


def sequence_scatter(
    input: Variable, index: Variable, updates: Variable, name: str | None = None
) -> Variable:
    """input[n, width], to whose row i at the places `index` the `updates` of sequence i are added. Shape:
    index, updates[total, 1], of the same sequences."""
    width = input.shape[-1]
    layout = Layout(lengths_of(index, "sequence_scatter"))
    places = layout.owner * width + flat_numbers(index)
    zeros = tensor.zeros([tensor.shape(layout.lengths)[0] * width], input.dtype)
    added = tensor.scatter(zeros, places, tensor.reshape(updates, [-1]), overwrite=False)
    return input + tensor.reshape(added, [-1, width])


def sequence_conv(
    input: Variable,
    num_filters: int,
    filter_size: int = 3,
    filter_stride: int = 1,
    padding: bool = True,
    padding_start: int | None = None,
    bias_attr: ParamLike = None,
    param_attr: ParamLike = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """For each row those from padding_start on, filter_size of them, zeros where its sequence has none, times
    a weight of its own [filter_size * width, num_filters], plus a bias. padding_start None: so that the row
    is in the middle. Shape: input[total, width] -> [total, num_filters]."""
    refuse("paddle.static.nn.sequence_conv", filter_stride=(filter_stride, 1))
    layer = name or framework.unique_name("sequence_conv")
    size = [filter_size * input.shape[1], num_filters]
    weight = framework.make_parameter(layer, size, "float32", param_attr, False, None, named=True)
    start = -(filter_size // 2) if padding_start is None else padding_start
    layout = Layout(lengths_of(input, "sequence_conv"))
    out = functional.linear(tensor.concat(context(input, layout, start, filter_size), 1), weight)
    if bias_attr is not False:
        bias = framework.make_parameter(layer, [num_filters], "float32", bias_attr, True, None, named=True)
        out = tensor.add(out, bias)
    return activated("paddle.static.nn.sequence_conv", act, with_lengths(out, layout.lengths))


def row_conv(
    input: Variable, future_context_size: int, param_attr: ParamLike = None, act: str | None = None
) -> Variable:
    """For each row itself and the future_context_size behind it, value by value times a weight of its own
    [future_context_size + 1, width], added up. Shape: that of input[total, width] with lod_level 1, or of
    input[batch, time, width] without."""
    layer = framework.unique_name("row_conv")
    count = future_context_size + 1
    weight = framework.make_parameter(
        layer, [count, input.shape[-1]], "float32", param_attr, False, None, named=True
    )
    dense = input.ndim == 3 and not input.lod_level
    if dense:
        longer = constant_pad(input, [(0, 0), (0, count - 1), (0, 0)], 0.0)
        rows = [constant_pad(longer, [(0, 0), (-k, k + 1 - count), (0, 0)], 0.0) for k in range(count)]
    else:
        layout = Layout(lengths_of(input, "row_conv"))
        rows = context(input, layout, 0, count)
    out = tensor.add_n([one * tensor.slice(weight, [0], [k], [k + 1]) for k, one in enumerate(rows)])
    if not dense:
        out = with_lengths(out, layout.lengths)
    return activated("paddle.static.nn.row_conv", act, out)


def lod_reset(x: Variable, y: Variable | None = None, target_lod: Sequence[int] | None = None) -> Variable:
    """x, its rows in other sequences: like those of y, or with the offsets that y, or the list target_lod,
    holds; a list that does not begin with 0 holds lengths."""
    if y is not None:
        offsets = flat_numbers(y)
        if y.lod_level:
            return groups.put(with_lengths(x, lengths_of(y, "lod_reset")), groups.groups_of(y))
        count = tensor.shape(offsets)[0]
        return with_lengths(
            x, tensor.slice(offsets, [0], [1], [count]) - tensor.slice(offsets, [0], [0], [-1])
        )
    if not target_lod:
        raise Error("config", "lod_reset without y and target_lod", "give it one of the two")
    numbers = [int(number) for number in target_lod]
    if numbers[0] == 0:
        numbers = [end - start for start, end in zip(numbers, numbers[1:])]
    return with_lengths(x, tensor.assign(_int64(numbers)))


def _int64(numbers):
    import numpy

    return numpy.array(numbers, dtype="int64")


__getattr__, __dir__ = _lazy.attach(__name__, owner="paddle.static.nn")

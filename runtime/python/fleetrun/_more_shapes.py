"""Functions of paddle that pick, place and make values, and products, made of several operators. Part of
fleetrun/tensor.py; formulas are Paddle's."""

from __future__ import annotations

import builtins
import itertools
import math

from fleetrun import _numbers, tensor
from fleetrun._arguments import plain, refuse
from fleetrun._error import Error
from fleetrun._types import Any, DTypeLike, Sequence, Shape, Variable


def _fixed(function: str, x: Variable, axis: int) -> int:
    """The size of an axis. Throws: Error(config) where it is not known."""
    size = x.shape[axis]
    if size < 0:
        raise Error("config", f"paddle.{function}: axis {axis} of {x.name} {list(x.shape)} has no fixed size")
    return size


def clone(x: Variable, name: str | None = None) -> Variable:
    """A copy of x, through which gradients flow."""
    return tensor.assign(x)


def increment(x: Variable, value: float = 1.0, name: str | None = None) -> Variable:
    """x + value, put into x itself."""
    return tensor.assign(x + (int(value) if x.dtype.name.startswith("int") else value), x)


def empty(shape: Shape, dtype: DTypeLike | None = None, name: str | None = None) -> Variable:
    """zeros(): what is not written to is 0."""
    return tensor.zeros(shape, dtype)


def empty_like(x: Variable, dtype: DTypeLike | None = None, name: str | None = None) -> Variable:
    """zeros_like()."""
    return tensor.zeros_like(x, dtype)


def standard_normal(shape: Shape, dtype: DTypeLike | None = None, name: str | None = None) -> Variable:
    """randn()."""
    return tensor.randn(shape, dtype)


def randint_like(
    x: Variable,
    low: int = 0,
    high: int | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Variable:
    """Integers in [low, high), in [0, low) without `high`, in x's shape and type."""
    sizes = tensor.shape(x)
    known = [size if size >= 0 else sizes[axis] for axis, size in enumerate(x.shape)]
    return tensor.cast(tensor.randint(low, high, known), dtype or x.dtype)


def logspace(
    start: float,
    stop: float,
    num: int,
    base: float = 10.0,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Variable:
    """base to the power of linspace(start, stop, num)."""
    step = (stop - start) / (num - 1) if num > 1 else 0.0
    values = [base ** (start + step * place) for place in range(num)]
    return tensor.to_tensor(values, dtype or "float32")


def tril_indices(row: int, col: int, offset: int = 0, dtype: DTypeLike = "int64") -> Variable:
    """[rows, columns] of the places up to that diagonal."""
    found = [(i, j) for i in range(row) for j in range(col) if j - i <= offset]
    return tensor.to_tensor([[i for i, _ in found], [j for _, j in found]], dtype)


def triu_indices(row: int, col: int | None = None, offset: int = 0, dtype: DTypeLike = "int64") -> Variable:
    """[rows, columns] of the places from that diagonal on."""
    found = [(i, j) for i in range(row) for j in range(row if col is None else col) if j - i >= offset]
    return tensor.to_tensor([[i for i, _ in found], [j for _, j in found]], dtype)


def inner(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """The sums of products along the last axes. Shape: [.., k] x [.., k] -> x's and y's other axes."""
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    return tensordot(x, y, [[x.ndim - 1], [y.ndim - 1]])


def tensordot(x: Variable, y: Variable, axes: Any = 2, name: str | None = None) -> Variable:
    """The sums of products along pairs of axes: the last of x and the first of y, or the two lists."""
    axes = plain(axes)
    if isinstance(axes, int):
        left, right = list(range(x.ndim - axes, x.ndim)), list(range(axes))
    else:
        pair = list(axes)
        pair = pair * 2 if len(pair) == 1 else pair
        pair = [pair, pair] if isinstance(pair[0], int) else pair
        left, right = ([one % v.ndim for one in part] for part, v in zip(pair, (x, y)))
    rest = [[axis for axis in range(v.ndim) if axis not in taken] for v, taken in ((x, left), (y, right))]
    sizes = [x.shape[axis] for axis in rest[0]] + [y.shape[axis] for axis in rest[1]]
    width = math.prod(x.shape[axis] for axis in left)
    first = tensor.reshape(tensor.transpose(x, rest[0] + left), [-1, width])
    second = tensor.reshape(tensor.transpose(y, right + rest[1]), [width, -1])
    if builtins.sum(size < 0 for size in sizes) > 1:
        raise Error("config", f"paddle.tensordot of {x.name} and {y.name}: several sizes are not known")
    return tensor.reshape(tensor.matmul(first, second), sizes)


def kron(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Every value of x times all of y. Shape: the product of the sizes of each axis."""
    axes = builtins.max(x.ndim, y.ndim)
    for _ in range(axes - x.ndim):
        x = tensor.unsqueeze(x, 0)
    for _ in range(axes - y.ndim):
        y = tensor.unsqueeze(y, 0)
    left = [size for one in x.shape for size in (one, 1)]
    right = [size for one in y.shape for size in (1, one)]
    product = tensor.reshape(x, left) * tensor.reshape(y, right)
    return tensor.reshape(product, [a * b if a >= 0 else -1 for a, b in zip(x.shape, y.shape)])


def atleast_1d(*inputs: Variable, name: str | None = None) -> Any:
    """Each with at least one axis."""
    return _at_least(inputs, 1)


def atleast_2d(*inputs: Variable, name: str | None = None) -> Any:
    """Each with at least two axes, new ones at the front."""
    return _at_least(inputs, 2)


def atleast_3d(*inputs: Variable, name: str | None = None) -> Any:
    """Each with at least three axes; a matrix gets its third at the end."""
    return _at_least(inputs, 3)


def _at_least(inputs: Sequence[Variable], axes: int) -> Any:
    made = []
    for x in inputs:
        while x.ndim < axes:
            x = tensor.unsqueeze(x, -1 if x.ndim == 2 else 0)
        made.append(x)
    return made[0] if len(made) == 1 else made


def broadcast_shape(x_shape: Sequence[int], y_shape: Sequence[int]) -> list[int]:
    """The shape of x + y. Throws: ValueError."""
    made = []
    for a, b in itertools.zip_longest(reversed(list(x_shape)), reversed(list(y_shape)), fillvalue=1):
        if a != b and 1 not in (a, b) and -1 not in (a, b):
            raise ValueError(f"the shapes {list(x_shape)} and {list(y_shape)} do not broadcast")
        made.append(b if a == 1 else a if b == 1 else builtins.max(a, b))
    return made[::-1]


def broadcast_tensors(input: Sequence[Variable], name: str | None = None) -> list[Variable]:
    """Each in the shape of their sum."""
    total = tensor.add_n([]) if not input else tensor.zeros_like(input[0])
    for one in input[1:]:
        total = total + tensor.zeros_like(one, input[0].dtype)
    return [tensor.expand_as(one, total) for one in input]


def moveaxis(x: Variable, source: Any, destination: Any, name: str | None = None) -> Variable:
    """x with the axes `source` at the places `destination`."""
    taken = [axis % x.ndim for axis in _numbers.listed(source)]
    places = [axis % x.ndim for axis in _numbers.listed(destination)]
    rest = iter(axis for axis in range(x.ndim) if axis not in taken)
    moved = dict(zip(places, taken))
    return tensor.transpose(x, [moved[p] if p in moved else next(rest) for p in range(x.ndim)])


def reverse(x: Variable, axis: Any, name: str | None = None) -> Variable:
    """flip()."""
    return tensor.flip(x, axis)


def rot90(x: Variable, k: int = 1, axes: Sequence[int] = (0, 1), name: str | None = None) -> Variable:
    """x turned k times by 90 degrees, from the first axis to the second; x itself for no turn."""
    first, second = (axis % x.ndim for axis in axes)
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    if k % 4 == 2:
        return tensor.flip(tensor.flip(x, first), second)
    if k % 4 == 1:
        return tensor.transpose(tensor.flip(x, second), order)
    return tensor.flip(tensor.transpose(x, order), second) if k % 4 == 3 else x


def vsplit(x: Variable, num_or_sections: Any, name: str | None = None) -> list[Variable]:
    """split() along the first axis."""
    return tensor.split(x, num_or_sections, 0)


def unflatten(x: Variable, axis: int, shape: Sequence[int], name: str | None = None) -> Variable:
    """x with one axis taken apart into `shape`."""
    axis %= x.ndim
    sizes = [0 if size < 0 else size for size in x.shape[:axis]]
    return tensor.reshape(x, [*sizes, *shape, *x.shape[axis + 1 :]])


def view(x: Variable, shape_or_dtype: Any, name: str | None = None) -> Variable:
    """x with another shape. Throws: Error(config) for a type."""
    if not isinstance(shape_or_dtype, (list, tuple)):
        raise Error("config", f"paddle.view(shape_or_dtype={shape_or_dtype!r})", "use paddle.cast for a type")
    return tensor.reshape(x, shape_or_dtype)


def view_as(x: Variable, other: Variable, name: str | None = None) -> Variable:
    """x with the shape of `other`."""
    return tensor.reshape(x, other.shape)


def crop(x: Variable, shape: Any = None, offsets: Any = None, name: str | None = None) -> Variable:
    """The part of x of this shape that begins at `offsets`; -1 goes to the end."""
    sizes = x.shape if shape is None else _numbers.listed(shape)
    starts = [0] * x.ndim if offsets is None else _numbers.listed(offsets)
    ends = [
        2**31 - 1 if isinstance(size, int) and size == -1 else start + size
        for start, size in zip(starts, sizes)
    ]
    return tensor.slice(x, list(range(x.ndim)), starts, ends)


def diag(x: Variable, offset: int = 0, padding_value: float = 0, name: str | None = None) -> Variable:
    """A vector of fixed size on a diagonal, `padding_value` elsewhere; of a matrix its diagonal. As in
    Paddle's programs no gradient flows through it."""
    if x.ndim not in (1, 2):
        raise Error("config", f"paddle.diag of {x.name} {list(x.shape)}", "give it a vector or a matrix")
    made = diagonal(x, offset) if x.ndim == 2 else spread(x, offset, padding_value)
    made.stop_gradient = True
    return made


def diagflat(x: Variable, offset: int = 0, name: str | None = None) -> Variable:
    """The values of x on a diagonal. As in Paddle's programs no gradient flows through it."""
    return diag(tensor.flatten(x) if x.ndim != 1 else x, offset)


def spread(input: Variable, offset: int, padding_value: float) -> Variable:
    """The last axis (of fixed size) of `input` on the diagonal of two axes, padding_value elsewhere."""
    size = _fixed("diag", input, -1)
    width, first = size + builtins.abs(offset), builtins.max(-offset, 0)
    places = [i - first if i + offset == j else size for i in range(width) for j in range(width)]
    last = input.ndim - 1
    padding = tensor.full_like(tensor.slice(input, [last], [0], [1]), padding_value)
    flat = tensor.gather(tensor.concat([input, padding], last), tensor.to_tensor(places, "int64"), last)
    return tensor.reshape(flat, [*[0 if s < 0 else s for s in input.shape[:-1]], width, width])


def diag_embed(
    input: Variable, offset: int = 0, dim1: int = -2, dim2: int = -1, name: str | None = None
) -> Variable:
    """The last axis (of fixed size) of `input` on the diagonal of two new axes dim1 and dim2. As in Paddle's
    programs no gradient flows through it."""
    axes = input.ndim + 1
    made = moveaxis(spread(input, offset, 0), [-2, -1], [dim1 % axes, dim2 % axes])
    made.stop_gradient = True
    return made


def diagonal(
    x: Variable, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None
) -> Variable:
    """The diagonal of two axes of fixed size, as the last axis."""
    moved = moveaxis(x, [axis1, axis2], [-2, -1])
    rows, columns = _fixed("diagonal", moved, -2), _fixed("diagonal", moved, -1)
    places = [i * columns + i + offset for i in range(rows) if 0 <= i + offset < columns]
    flat = tensor.flatten(moved, moved.ndim - 2, -1)
    return tensor.gather(flat, tensor.to_tensor(places, "int64"), moved.ndim - 2)


def diagonal_scatter(
    x: Variable, y: Variable, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None
) -> Variable:
    """x with y where diagonal() takes its values from. As in Paddle's programs no gradient flows to y."""
    moved = moveaxis(x, [axis1, axis2], [-2, -1])
    rows, columns = _fixed("diagonal_scatter", moved, -2), _fixed("diagonal_scatter", moved, -1)
    order = [i if 0 <= i + offset < columns else -1 for i in range(rows)]
    first = builtins.min((i for i in order if i >= 0), default=0)
    places = [0 if i < 0 or j != i + offset else i - first for i in order for j in range(columns)]
    chosen = [[i >= 0 and j == i + offset for j in range(columns)] for i in order]
    wide = tensor.gather(y, tensor.to_tensor(places, "int64"), y.ndim - 1)
    wide = tensor.reshape(wide, [*[0 if size < 0 else size for size in y.shape[:-1]], rows, columns])
    wide.stop_gradient = True
    made = tensor.where(tensor.to_tensor(chosen, "bool"), wide, moved)
    return moveaxis(made, [-2, -1], [axis1, axis2])


def select_scatter(x: Variable, values: Variable, axis: int, index: int, name: str | None = None) -> Variable:
    """x with `values` at one place of `axis`, which is of fixed size."""
    size = _fixed("select_scatter", x, axis)
    if not -size <= index < size:
        raise ValueError(f"paddle.select_scatter: there is no place {index} on an axis of {size}")
    shape = [size if k == axis % x.ndim else 1 for k in range(x.ndim)]
    chosen = tensor.reshape(tensor.to_tensor([k == index % size for k in range(size)], "bool"), shape)
    return tensor.where(chosen, tensor.unsqueeze(values, axis), x)


def unique_consecutive(
    x: Variable,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    dtype: DTypeLike = "int64",
    name: str | None = None,
) -> Any:
    """x (flattened, or its parts along `axis`) without those that are equal to the one before; and for each
    where it went, and how often each was there. No gradient."""
    flat = tensor.flatten(x) if axis is None else moveaxis(x, axis, 0)
    before = tensor.concat([tensor.slice(flat, [0], [0], [1]), tensor.slice(flat, [0], [0], [-1])], 0)
    other = tensor.not_equal(flat, before)
    other = tensor.any(other, list(range(1, flat.ndim))) if flat.ndim > 1 else other
    steps = tensor.cast(other, "int64")
    inverse = tensor.cumsum(steps, 0)
    begins = tensor.concat([tensor.zeros([1], "int64"), tensor.reshape(tensor.nonzero(other), [-1])], 0)
    made = tensor.gather(flat, begins, 0)
    total = tensor.reshape(tensor.numel(inverse), [1])
    ends = tensor.concat([tensor.slice(begins, [0], [1], [2**31 - 1]), tensor.cast(total, "int64")], 0)
    found = [made if axis is None else moveaxis(made, 0, axis)]
    found += [tensor.cast(inverse, dtype)] if return_inverse else []
    found += [tensor.cast(ends - begins, dtype)] if return_counts else []
    for one in found:
        one.stop_gradient = True
    return found[0] if len(found) == 1 else tuple(found)


def trace(x: Variable, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None) -> Variable:
    """The sum of diagonal()."""
    return tensor.sum(diagonal(x, offset, axis1, axis2), -1)


def diff(
    x: Variable,
    n: int = 1,
    axis: int = -1,
    prepend: Variable | None = None,
    append: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Each value minus the one before it along `axis`, n times."""
    parts = [one for one in (prepend, x, append) if one is not None]
    x = tensor.concat(parts, axis) if len(parts) > 1 else x
    for _ in range(n):
        x = tensor.slice(x, [axis], [1], [2**31 - 1]) - tensor.slice(x, [axis], [0], [-1])
    return x


def trapezoid(
    y: Variable, x: Variable | None = None, dx: float | None = None, axis: int = -1, name: str | None = None
) -> Variable:
    """The area below y along `axis` by trapezoids; x: where its values are, else dx (1) apart."""
    end = tensor.slice(y, [axis], [1], [2**31 - 1])
    begin = tensor.slice(y, [axis], [0], [-1])
    if x is None:
        return tensor.sum(tensor.scale(end + begin, 0.5 * (1.0 if dx is None else dx)), axis)
    return tensor.sum(tensor.scale((end + begin) * diff(x, 1, -1 if x.ndim == 1 else axis), 0.5), axis)


def repeat_interleave(
    x: Variable, repeats: int | Variable, axis: int | None = None, name: str | None = None
) -> Variable:
    """Each value along `axis` (or of the flattened x) so many times; a variable repeats[n] says it of each
    place, or repeats[1] of all."""
    if axis is None:
        x, axis = tensor.flatten(x), 0
    axis %= x.ndim
    if isinstance(repeats, Variable):
        each = tensor.expand(tensor.cast(repeats, "int64"), tensor.shape(x)[axis : axis + 1])
        ends = tensor.cumsum(each, 0)
        places = tensor.arange(0, tensor.sum(each), 1, "int64")
        return tensor.gather(x, tensor.searchsorted(ends, places, right=True), axis)
    repeated = tensor.concat([tensor.unsqueeze(x, axis + 1)] * int(repeats), axis + 1)
    return tensor.flatten(repeated, axis, axis + 1)


def take(x: Variable, index: Variable, mode: str = "raise", name: str | None = None) -> Variable:
    """The values of the flattened x at `index`; mode: "wrap" around the end, "clip" to it."""
    flat = tensor.flatten(x)
    count = tensor.numel(x)
    if mode == "wrap":
        index = tensor.mod(index, count)
    elif mode == "clip":
        index = tensor.minimum(tensor.maximum(index, tensor.zeros_like(index)), count - 1)
    else:
        index = tensor.where(tensor.less_than(index, 0), index + count, index)
    picked = tensor.gather(flat, tensor.flatten(index), 0)
    return tensor.reshape(picked, index.shape)


def index_sample(x: Variable, index: Variable) -> Variable:
    """Of each row of x those places that the row of `index` says. Shape: [n, k] x [n, m] -> [n, m]."""
    return tensor.take_along_axis(x, index, 1)


def index_add(x: Variable, index: Variable, axis: int, value: Variable, name: str | None = None) -> Variable:
    """x with the parts of `value` added along `axis` at index[n]."""
    moved, parts = moveaxis(x, axis, 0), moveaxis(value, axis, 0)
    added = tensor.scatter(tensor.zeros_like(moved), index, parts, overwrite=False)
    return moveaxis(moved + added, 0, axis)


def scatter_nd_add(x: Variable, index: Variable, updates: Variable, name: str | None = None) -> Variable:
    """x with `updates` added at index[.., k]: one place for each of its first k axes, which are of fixed
    size."""
    count = index.shape[-1]
    sizes = [_fixed("scatter_nd_add", x, axis) for axis in range(count)]
    steps = [math.prod(sizes[axis + 1 :]) for axis in range(count)]
    place = tensor.sum(index * tensor.to_tensor(steps, index.dtype), -1)
    flat = tensor.reshape(x, [math.prod(sizes), *x.shape[count:]])
    rows = tensor.reshape(updates, [-1, *x.shape[count:]])
    added = tensor.scatter(tensor.zeros_like(flat), tensor.flatten(place), rows, overwrite=False)
    return tensor.reshape(flat + added, x.shape)


def scatter_nd(index: Variable, updates: Variable, shape: Sequence[int], name: str | None = None) -> Variable:
    """zeros of `shape` with `updates` added at index[.., k]."""
    return scatter_nd_add(tensor.zeros(list(shape), updates.dtype), index, updates)


def multiplex(inputs: Sequence[Variable], index: Variable, name: str | None = None) -> Variable:
    """Row n of inputs[index[n]]. Shape: each [n, ..], index[n, 1] or [n]."""
    rows = tensor.stack(list(inputs), 1)
    chosen = tensor.flatten(tensor.cast(index, "int64"))
    count = inputs[0].shape[0]
    numbers = tensor.arange(0, tensor.shape(inputs[0])[0] if count < 0 else count, 1, "int64")
    return tensor.gather_nd(rows, tensor.stack([numbers, chosen], 1))


def shard_index(
    input: Variable, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1
) -> Variable:
    """The place within shard shard_id of those ids that are in it, ignore_value for the others."""
    size = (index_num + nshards - 1) // nshards
    mine = tensor.equal(tensor.floor_divide(input, size), shard_id)
    return tensor.where(mine, tensor.mod(input, size), tensor.full_like(input, ignore_value))


def masked_fill(x: Variable, mask: Variable, value: Any, name: str | None = None) -> Variable:
    """`value` where `mask` (bool) holds, else x."""
    filled = value if isinstance(value, Variable) else tensor.full([1], value, x.dtype)
    return tensor.where(mask, filled, x)


def kthvalue(
    x: Variable, k: int, axis: int | None = None, keepdim: bool = False, name: str | None = None
) -> tuple[Variable, Variable]:
    """(value, place) of the k-th smallest along `axis`, the last one when None."""
    axis = -1 if axis is None else axis
    values, places = tensor.topk(x, k, axis, largest=False)
    both = tuple(tensor.slice(one, [axis], [k - 1], [k]) for one in (values, places))
    value, place = both if keepdim else tuple(tensor.squeeze(one, axis) for one in both)
    return value, place


def median(
    x: Variable, axis: int | None = None, keepdim: bool = False, mode: str = "avg", name: str | None = None
) -> Variable:
    """The middle value along `axis` (of fixed size), or of all; the mean of two for an even number; NaN where
    there is one."""
    refuse("paddle.median", mode=(mode, "avg"))
    if axis is None:
        made = median(tensor.flatten(x), 0)
        return tensor.reshape(made, [1] * x.ndim) if keepdim else made
    size = _fixed("median", x, axis)
    lower, _ = tensor.topk(x, size // 2 + 1, axis, largest=False)
    middle = tensor.slice(lower, [axis], [(size - 1) // 2], [size // 2 + 1])
    nans = tensor.where(tensor.isnan(x), x, tensor.zeros_like(x))
    return tensor.mean(middle, axis, keepdim) + tensor.sum(nans, axis, keepdim=keepdim)


def searchsorted(
    sorted_sequence: Variable,
    values: Variable,
    out_int32: bool = False,
    right: bool = False,
    name: str | None = None,
) -> Variable:
    """Where each value goes into the rising sequence of its row; right: behind equal ones."""
    compare = tensor.greater_equal if right else tensor.greater_than
    row = tensor.unsqueeze(sorted_sequence, -2) if sorted_sequence.ndim > 1 else sorted_sequence
    below = compare(tensor.unsqueeze(values, -1), row)
    return tensor.cast(tensor.sum(below, -1), "int32" if out_int32 else "int64")


def bucketize(
    x: Variable,
    sorted_sequence: Variable,
    out_int32: bool = False,
    right: bool = False,
    name: str | None = None,
) -> Variable:
    """searchsorted() in one sequence."""
    return searchsorted(sorted_sequence, x, out_int32, right)


def combinations(
    x: Variable, r: int = 2, with_replacement: bool = False, name: str | None = None
) -> Variable:
    """All choices of r values of a vector of fixed size. Shape: [how many, r]."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = list(choose(range(_fixed("combinations", x, 0)), r))
    flat = tensor.to_tensor([place for one in places for place in one], "int64")
    return tensor.reshape(tensor.gather(x, flat), [len(places), r])


def vander(x: Variable, n: int | None = None, increasing: bool = False, name: str | None = None) -> Variable:
    """The powers of each value of a vector, from n - 1 down to 0."""
    count = _fixed("vander", x, 0) if n is None else n
    powers = [tensor.ones_like(x)]
    for _ in range(count - 1):
        powers.append(powers[-1] * x)
    return tensor.stack(powers[:count] if increasing else powers[:count][::-1], 1)

"""fluid.layers: arithmetic, shapes, picking and constants, under the names and arguments of Paddle 1.x."""

from __future__ import annotations

import builtins

from fleetrun import _creation, framework, tensor
from fleetrun._arguments import refuse
from fleetrun._padding import constant_pad
from fleetrun._types import Any, Callable, DTypeLike, Sequence, Variable
from fleetrun.nn import functional
from fleetrun.static import metrics
from fleetrun.static.activated import activated

__all__ = [
    "accuracy", "argsort", "assign", "auc", "autoincreased_step_counter", "cast", "clip_by_norm",
    "concat", "cos_sim", "cumsum", "elementwise_add", "elementwise_div", "elementwise_floordiv",
    "elementwise_max", "elementwise_min", "elementwise_mod", "elementwise_mul", "elementwise_pow",
    "elementwise_sub", "equal", "expand", "expand_as", "eye", "fill_constant",
    "fill_constant_batch_size_like", "flatten", "gather", "gaussian_random",
    "gaussian_random_batch_size_like", "greater_equal", "greater_than", "has_inf", "has_nan",
    "increment", "is_empty", "isfinite", "l2_normalize", "less_equal", "less_than", "logical_and",
    "logical_not", "logical_or", "logical_xor", "matmul", "mean", "mul", "multiplex", "not_equal",
    "one_hot", "one_hot_of_all", "ones", "range", "reduce_all", "reduce_any", "reduce_max",
    "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum", "reshape", "reverse", "scale", "scatter",
    "size", "split", "squeeze", "stack", "strided_slice", "sum", "sums", "topk", "transpose",
    "uniform_random", "uniform_random_batch_size_like", "unsqueeze", "where", "zeros",
]  # fmt: skip

Axes = int | Sequence[int] | None


def _elementwise(name: str) -> Callable[..., Variable]:
    def function(
        x: Variable, y: Any, axis: int = -1, act: str | None = None, name: str | None = None
    ) -> Variable:
        missing = x.ndim - axis - y.ndim if axis != -1 and isinstance(y, Variable) else 0
        for _ in builtins.range(missing):
            y = tensor.unsqueeze(y, -1)
        return activated(f"fluid.layers.{function.__name__}", act, operation(x, y))

    operation = getattr(tensor, name)
    return function


def _named(name: str, function: Callable[..., Variable], text: str) -> Callable[..., Variable]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


_BETWEEN = "{} of x and y, value by value; y's axes begin at x's `axis`, or are its last ones (-1)."
elementwise_add = _named("elementwise_add", _elementwise("add"), _BETWEEN.format("The sum"))
elementwise_sub = _named("elementwise_sub", _elementwise("subtract"), _BETWEEN.format("The difference"))
elementwise_mul = _named("elementwise_mul", _elementwise("multiply"), _BETWEEN.format("The product"))
elementwise_div = _named("elementwise_div", _elementwise("divide"), _BETWEEN.format("The quotient"))
elementwise_max = _named("elementwise_max", _elementwise("maximum"), _BETWEEN.format("The larger one"))
elementwise_min = _named("elementwise_min", _elementwise("minimum"), _BETWEEN.format("The smaller one"))
elementwise_pow = _named("elementwise_pow", _elementwise("pow"), _BETWEEN.format("The power"))
elementwise_mod = _named("elementwise_mod", _elementwise("mod"), _BETWEEN.format("The rest"))
elementwise_floordiv = _named(
    "elementwise_floordiv", _elementwise("floor_divide"), _BETWEEN.format("The quotient rounded down")
)


def auc(
    input: Variable,
    label: Variable,
    curve: str = "ROC",
    num_thresholds: int = 4095,
    topk: int = 1,
    slide_steps: int = 1,
) -> tuple[Variable, Variable, list[Variable]]:
    """paddle.static.auc. Shape of both areas: [1]."""
    total, batch, counters = metrics.auc(input, label, curve, num_thresholds, topk, slide_steps)
    return with_an_axis(total), with_an_axis(batch), counters


def with_an_axis(x: Variable) -> Variable:
    """A number as Paddle 1.x has one: it knows no shape without axes."""
    return x if x.shape else tensor.reshape(x, [1])


def _over_all(operation: Callable[..., Variable], x: Variable) -> Variable:
    """One number with an axis, named after its operation and not a reshape: scripts fetch it by that."""
    return operation(x if x.ndim == 1 else tensor.reshape(x, [-1]), axis=0, keepdim=True)


def _reduce(name: str) -> Callable[..., Variable]:
    def function(
        input: Variable, dim: Axes = None, keep_dim: bool = False, name: str | None = None
    ) -> Variable:
        if dim is None and not keep_dim:
            return _over_all(operation, input)
        return with_an_axis(operation(input, axis=dim, keepdim=keep_dim))

    operation = getattr(tensor, name)
    return function


_OVER = "{} over the axes `dim`, all when none is given."
reduce_sum = _named("reduce_sum", _reduce("sum"), _OVER.format("The sum"))
reduce_mean = _named("reduce_mean", _reduce("mean"), _OVER.format("The mean"))
reduce_max = _named("reduce_max", _reduce("max"), _OVER.format("The largest value"))
reduce_min = _named("reduce_min", _reduce("min"), _OVER.format("The smallest value"))
reduce_prod = _named("reduce_prod", _reduce("prod"), _OVER.format("The product"))
reduce_all = _named("reduce_all", _reduce("all"), _OVER.format("Whether all values are true,"))
reduce_any = _named("reduce_any", _reduce("any"), _OVER.format("Whether a value is true,"))


def _into(result: Variable, out: Variable | None) -> Variable:
    """`result`, copied into `out` when it is given."""
    return result if out is None else tensor.assign(result, out)


def _compare(name: str) -> Callable[..., Variable]:
    def function(
        x: Variable,
        y: Any,
        force_cpu: Any = None,
        cond: Variable | None = None,
        name: str | None = None,
    ) -> Variable:
        if isinstance(force_cpu, Variable):  # equal() and not_equal() have cond there
            cond = force_cpu
        return _into(operation(x, y), cond)

    operation = getattr(tensor, name)
    return function


_WHETHER = "{} of x and y, value by value, as bool; into `cond` when it is given."
equal = _named("equal", _compare("equal"), _WHETHER.format("x == y"))
not_equal = _named("not_equal", _compare("not_equal"), _WHETHER.format("x != y"))
less_than = _named("less_than", _compare("less_than"), _WHETHER.format("x < y"))
less_equal = _named("less_equal", _compare("less_equal"), _WHETHER.format("x <= y"))
greater_than = _named("greater_than", _compare("greater_than"), _WHETHER.format("x > y"))
greater_equal = _named("greater_equal", _compare("greater_equal"), _WHETHER.format("x >= y"))


def logical_and(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Whether both hold; into `out` when it is given."""
    return _into(tensor.logical_and(x, y), out)


def logical_or(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Whether one holds; into `out` when it is given."""
    return _into(tensor.logical_or(x, y), out)


def logical_xor(x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Whether just one holds; into `out` when it is given."""
    return _into(tensor.logical_xor(x, y), out)


def logical_not(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Whether x does not hold; into `out` when it is given."""
    return _into(tensor.logical_not(x), out)


def concat(input: Sequence[Variable], axis: int = 0, name: str | None = None) -> Variable:
    """Variables behind each other along an axis."""
    return tensor.concat(input, axis)


def mean(x: Variable, name: str | None = None) -> Variable:
    """The mean of all values. Shape: [1]."""
    return _over_all(tensor.mean, x)


def cumsum(
    x: Variable, axis: int = -1, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Variable:
    """Sums of the values up to each, along an axis. exclusive: without it; reverse: from it to the end."""
    axis = -1 if axis is None else axis
    one = tensor.flip(x, axis) if reverse else x
    if exclusive:
        around = [(0, 0)] * x.ndim
        around[axis] = (1, 0)
        one = constant_pad(tensor.slice(one, [axis % x.ndim], [0], [-1]), around, 0.0)
    total = tensor.cumsum(one, axis)
    return tensor.flip(total, axis) if reverse else total


def accuracy(
    input: Variable,
    label: Variable,
    k: int = 1,
    correct: Variable | None = None,
    total: Variable | None = None,
) -> Variable:
    """paddle.static.accuracy, and as in Paddle 1.x topk() beside it, which scripts fetch by name. Shape:
    [1]."""
    topk(input, k)
    return with_an_axis(metrics.accuracy(input, label, k, correct, total))


def cast(x: Variable, dtype: DTypeLike) -> Variable:
    """x in another type."""
    return tensor.cast(x, dtype)


def scale(
    x: Variable,
    scale: float | Variable = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """act(scale * x + bias), or act(scale * (x + bias)); scale: a number, or a variable of one value."""
    if isinstance(scale, Variable):
        scaled = tensor.multiply(x, scale) + bias if bias_after_scale else tensor.multiply(x + bias, scale)
    else:
        scaled = tensor.scale(x, scale, bias, bias_after_scale)
    return activated("fluid.layers.scale", act, scaled)


def mul(
    x: Variable, y: Variable, x_num_col_dims: int = 1, y_num_col_dims: int = 1, name: str | None = None
) -> Variable:
    """The product of two matrices, to which the axes before and after *_num_col_dims are joined. Shape:
    x's first x_num_col_dims axes and y's after y_num_col_dims."""
    left = x if x.ndim == 2 else _matrix(x, x_num_col_dims)
    right = y if y.ndim == 2 else _matrix(y, y_num_col_dims)
    product = tensor.matmul(left, right)
    if x_num_col_dims == 1 and y.ndim - y_num_col_dims == 1:
        return product
    sizes = tensor.shape(x) if any(size < 0 for size in x.shape[:x_num_col_dims]) else None
    first = [
        sizes[axis] if size < 0 and sizes is not None else size
        for axis, size in enumerate(x.shape[:x_num_col_dims])
    ]
    return tensor.reshape(product, [*first, *y.shape[y_num_col_dims:]])


def _matrix(x: Variable, axes: int) -> Variable:
    tail = tensor.flatten(x, axes, -1) if x.ndim > axes + 1 else x
    return tensor.flatten(tail, 0, axes - 1) if axes > 1 else tail


def matmul(
    x: Variable,
    y: Variable,
    transpose_x: bool = False,
    transpose_y: bool = False,
    alpha: float = 1.0,
    name: str | None = None,
) -> Variable:
    """alpha times the matrix product."""
    product = tensor.matmul(x, y, transpose_x, transpose_y)
    return product if alpha == 1.0 else tensor.scale(product, alpha)


def reshape(
    x: Variable,
    shape: Any,
    actual_shape: Variable | None = None,
    act: str | None = None,
    inplace: bool = False,
    name: str | None = None,
) -> Variable:
    """x with another shape, or with that in `actual_shape`; inplace: accepted, it saves memory in Paddle."""
    out = tensor.reshape(x, shape if actual_shape is None else actual_shape)
    return activated("fluid.layers.reshape", act, out)


def split(
    input: Variable, num_or_sections: int | Sequence[int], dim: int = -1, name: str | None = None
) -> list[Variable]:
    """Parts of `input` along the axis `dim`."""
    return tensor.split(input, num_or_sections, dim)


def transpose(x: Variable, perm: Sequence[int], name: str | None = None) -> Variable:
    """x with its axes in this order."""
    return tensor.transpose(x, perm)


def squeeze(input: Variable, axes: Sequence[int], name: str | None = None) -> Variable:
    """`input` without the axes `axes`, which are 1; without all that are 1 for an empty list."""
    return tensor.squeeze(input, list(axes) or None)


def unsqueeze(input: Variable, axes: int | Sequence[int], name: str | None = None) -> Variable:
    """`input` with new axes of size 1."""
    return tensor.unsqueeze(input, axes)


def flatten(x: Variable, axis: int = 1, name: str | None = None) -> Variable:
    """A matrix: the axes before `axis` joined into one, and those from it on."""
    if axis == 0:
        return tensor.reshape(x, [1, -1])
    return _matrix(x, axis) if axis < x.ndim else tensor.unsqueeze(tensor.flatten(x), -1)


def stack(x: Variable | Sequence[Variable], axis: int = 0, name: str | None = None) -> Variable:
    """Variables of one shape, stacked along a new axis."""
    return tensor.stack([x] if isinstance(x, Variable) else x, axis)


def strided_slice(
    input: Variable, axes: Sequence[int], starts: Any, ends: Any, strides: Sequence[int]
) -> Variable:
    """input[starts:ends:strides] along each of `axes`."""
    return tensor.strided_slice(input, axes, starts, ends, strides)


def expand(x: Variable, expand_times: Any, name: str | None = None) -> Variable:
    """x repeated so many times along each axis."""
    return tensor.tile(x, expand_times)


def expand_as(x: Variable, target_tensor: Variable, name: str | None = None) -> Variable:
    """x repeated to the shape of target_tensor."""
    return tensor.expand_as(x, target_tensor)


def gather(input: Variable, index: Variable, overwrite: bool = True) -> Variable:
    """The rows of `input` at index; overwrite: how Paddle adds up gradients, which are added up here."""
    return tensor.gather(input, index)


def scatter(
    input: Variable, index: Variable, updates: Variable, name: str | None = None, overwrite: bool = True
) -> Variable:
    """`input` with the rows index[n] replaced by updates[n, ..], or their sums."""
    return tensor.scatter(input, index, updates, overwrite)


def one_hot(input: Variable, depth: int, allow_out_of_range: bool = False) -> Variable:
    """1 at the place that `input` says, else 0. Shape: [.., 1] -> [.., depth], as here in 1.x."""
    refuse("fluid.layers.one_hot", allow_out_of_range=(allow_out_of_range, False))
    squeezed = input.ndim > 1 and input.shape[-1] == 1
    return functional.one_hot(tensor.squeeze(input, -1) if squeezed else input, depth)


def one_hot_of_all(input: Variable, depth: int, allow_out_of_range: bool = False) -> Variable:
    """fluid.one_hot: 1 at the place that `input` says, else 0. Shape: [..] -> [.., depth]."""
    refuse("fluid.one_hot", allow_out_of_range=(allow_out_of_range, False))
    return functional.one_hot(input, depth)


def topk(input: Variable, k: int | Variable, name: str | None = None) -> tuple[Variable, Variable]:
    """(values, places) of the k largest along the last axis."""
    inputs, number = ([input, k], {}) if isinstance(k, Variable) else ([input], {"k": int(k)})
    names = framework.temporaries(framework.unique_name("top_k"), 2)
    values, places = framework.append("top_k", "top_k", inputs, number, names)
    return values, places


def argsort(
    input: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> tuple[Variable, Variable]:
    """(values, places) in rising, or falling, order along `axis`."""
    return tensor.sort(input, axis, descending), tensor.argsort(input, axis, descending)


def fill_constant(
    shape: Any,
    dtype: DTypeLike,
    value: float | Variable,
    force_cpu: bool = False,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """A variable with one value, a number or a variable's; into `out` when it is given."""
    if isinstance(value, Variable):
        one = tensor.reshape(tensor.cast(value, dtype), [1])
        return _into(tensor.expand_as(one, tensor.full(shape, 0, dtype)), out)
    return _into(tensor.full(shape, value, dtype), out)


def zeros(shape: Any, dtype: DTypeLike, force_cpu: bool = False, name: str | None = None) -> Variable:
    """fill_constant() of 0."""
    return tensor.zeros(shape, dtype)


def ones(shape: Any, dtype: DTypeLike, force_cpu: bool = False) -> Variable:
    """fill_constant() of 1."""
    return tensor.ones(shape, dtype)


def _shape_like(input: Variable, shape: Sequence[int], input_dim_idx: int, output_dim_idx: int) -> list[Any]:
    sizes: list[Any] = [int(size) for size in shape]
    known = input.shape[input_dim_idx]
    sizes[output_dim_idx] = known if known >= 0 else tensor.shape(input)[input_dim_idx]
    return sizes


def fill_constant_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: DTypeLike,
    value: float,
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    force_cpu: bool = False,
) -> Variable:
    """One value, in `shape` with the size output_dim_idx taken from input's input_dim_idx."""
    return tensor.full(_shape_like(input, shape, input_dim_idx, output_dim_idx), value, dtype)


def uniform_random(
    shape: Any, dtype: DTypeLike = "float32", min: float = -1.0, max: float = 1.0, seed: int = 0
) -> Variable:
    """Uniform in [min, max): new values in every run."""
    return tensor.uniform(shape, dtype, min, max, seed)


def uniform_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: DTypeLike = "float32",
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
) -> Variable:
    """uniform_random() in `shape` with one size taken from `input`."""
    return tensor.uniform(_shape_like(input, shape, input_dim_idx, output_dim_idx), dtype, min, max, seed)


def gaussian_random(
    shape: Any, mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: DTypeLike = "float32"
) -> Variable:
    """Normal with this mean and deviation: new values in every run. seed: of its numbers, 0 for the
    program's."""
    return tensor.scale(_creation._random("normal", shape, 0.0, 1.0, dtype, seed), std, mean)


def gaussian_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    dtype: DTypeLike = "float32",
) -> Variable:
    """gaussian_random() in `shape` with one size taken from `input`."""
    return gaussian_random(_shape_like(input, shape, input_dim_idx, output_dim_idx), mean, std, seed, dtype)


def range(start: Any, end: Any, step: Any, dtype: DTypeLike, name: str | None = None) -> Variable:
    """start, start + step, … below `end`."""
    return tensor.arange(start, end, step, dtype)


def eye(
    num_rows: int,
    num_columns: int | None = None,
    batch_shape: Sequence[int] | None = None,
    dtype: DTypeLike = "float32",
    name: str | None = None,
) -> Variable:
    """1 on the diagonal, else 0; one such matrix for each place of batch_shape."""
    made = tensor.eye(num_rows, num_columns, dtype)
    return made if batch_shape is None else tensor.expand(made, [*batch_shape, *made.shape])


def reverse(x: Variable, axis: int | Sequence[int]) -> Variable:
    """x with the values along the axes `axis` in reverse order."""
    return tensor.flip(x, axis)


def assign(input: Any, output: Variable | None = None) -> Variable:
    """A copy of a variable, or a constant of an array; into `output` when it is given."""
    return tensor.assign(input, output)


def sum(x: Variable | Sequence[Variable]) -> Variable:
    """The sum of a list of variables of one shape."""
    return tensor.add_n(x)


def sums(input: Variable | Sequence[Variable], out: Variable | None = None) -> Variable:
    """sum(); into `out` when it is given."""
    return _into(tensor.add_n(input), out)


def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """x + value; in_place: into x itself."""
    return _into(x + (int(value) if x.dtype.name.startswith("int") else value), x if in_place else None)


def autoincreased_step_counter(counter_name: str | None = None, begin: int = 1, step: int = 1) -> Variable:
    """A number that the program keeps: `begin` in its first run, and `step` more in each that follows."""
    from fleetrun.static.inputs import create_global_var

    name = counter_name or "@STEP_COUNTER@"
    main = framework.default_main_program()
    if main.has_var(name):
        return main.var(name)
    counter = create_global_var([1], begin - step, "int64", persistable=True, name=name)
    increment(counter, step)
    counter.stop_gradient = True
    return counter


def size(input: Variable) -> Variable:
    """How many values `input` has when the program runs, int64."""
    return with_an_axis(tensor.numel(input))


def is_empty(x: Variable, cond: Variable | None = None, name: str | None = None) -> Variable:
    """Whether x has no values; into `cond` when it is given."""
    return _into(tensor.equal(tensor.numel(x), 0), cond)


def has_inf(x: Variable) -> Variable:
    """Whether a value is infinite."""
    return with_an_axis(tensor.any(tensor.isinf(x)))


def has_nan(x: Variable) -> Variable:
    """Whether a value is NaN."""
    return with_an_axis(tensor.any(tensor.isnan(x)))


def isfinite(x: Variable) -> Variable:
    """Whether all values are neither NaN nor infinite: one value, as here in 1.x."""
    return with_an_axis(tensor.all(tensor.isfinite(x)))


def where(condition: Variable) -> Variable:
    """The places where `condition` holds. Shape: [how many, axes] int64."""
    return tensor.nonzero(condition)


def multiplex(inputs: Sequence[Variable], index: Variable, name: str | None = None) -> Variable:
    """Row n of inputs[index[n]]. Shape: each [n, ..], index[n, 1]."""
    return tensor.multiplex(inputs, index)


def l2_normalize(x: Variable, axis: int, epsilon: float = 1e-12, name: str | None = None) -> Variable:
    """x / sqrt(sum of squares along `axis` + epsilon)."""
    axis = -1 if x.ndim == 1 else axis
    return x / tensor.sqrt(tensor.sum(tensor.square(x), axis=axis, keepdim=True) + epsilon)


def clip_by_norm(x: Variable, max_norm: float, name: str | None = None) -> Variable:
    """x scaled down to the norm max_norm where it has a larger one."""
    size = tensor.sqrt(tensor.sum(tensor.square(x)))
    return x * (tensor.full([1], max_norm) / tensor.clip(size, min=float(max_norm)))


def cos_sim(X: Variable, Y: Variable) -> Variable:
    """The cosine of the angle between rows. Shape: X[n, width], Y[n, width] or [1, width] -> [n, 1]."""
    product = tensor.sum(X * Y, axis=1, keepdim=True)
    left = tensor.sqrt(tensor.sum(tensor.square(X), axis=1, keepdim=True))
    lengths = left * tensor.sqrt(tensor.sum(tensor.square(Y), axis=1, keepdim=True))
    # Named as Paddle's operator, which is one: scripts fetch it by that.
    return framework.append("cos_sim", "elementwise_div", [product, lengths])

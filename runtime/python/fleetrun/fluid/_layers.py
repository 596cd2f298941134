"""fluid.layers: inputs, readers and layers with parameters, under the names and arguments of Paddle 1.x."""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun._types import Any, Callable, DTypeLike, Initializer, ParamLike, Sequence, Variable
from fleetrun.io.generator_loader import GeneratorLoader
from fleetrun.nn import functional
from fleetrun.nn._windows import avg_pool2d_of_whole, uncut
from fleetrun.static import inputs, loose_shapes, nn
from fleetrun.static.printing import Print as _print

__all__ = [
    "adaptive_pool2d", "adaptive_pool3d", "create_parameter", "create_py_reader_by_data", "create_tensor",
    "data", "double_buffer", "embedding", "fc", "pool2d", "Print", "py_reader", "read_file", "Reader",
]  # fmt: skip


def data(
    name: str,
    shape: Sequence[int | None],
    append_batch_size: bool = True,
    dtype: DTypeLike = "float32",
    lod_level: int = 0,
    type: Any = None,
    stop_gradient: bool = True,
) -> Variable:
    """An input that is fed by name. append_batch_size: shape is that of one example, unless it names the
    batch with -1. Other sizes may be fed: the program computes with these then."""
    refuse("fluid.layers.data", type=(type, None))
    sizes = [-1 if size is None else int(size) for size in shape]
    if append_batch_size and not any(size < 0 for size in sizes):
        sizes = [-1, *sizes]
    variable = loose_shapes.declare(inputs.data(name, sizes, dtype, lod_level))
    variable.stop_gradient = stop_gradient
    return variable


def fc(
    input: Variable | Sequence[Variable],
    size: int,
    num_flatten_dims: int = 1,
    param_attr: ParamLike | Sequence[ParamLike] = None,
    bias_attr: ParamLike = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """act(input @ weight + bias), for a list of inputs the sum of their products."""
    return nn.fc(input, size, num_flatten_dims, param_attr, bias_attr, act, name)


def embedding(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: ParamLike = None,
    dtype: DTypeLike = "float32",
) -> Variable:
    """Rows of a new parameter by id. Shape: input[.., 1] int64 -> [.., width]: the last axis of ids has one,
    as here in 1.x."""
    rows = nn.embedding(input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype)
    if input.ndim > 1 and input.shape[-1] == 1 and rows.ndim > input.ndim:
        return tensor.squeeze(rows, [-2])
    return rows


def pool2d(
    input: Variable,
    pool_size: int | Sequence[int] = -1,
    pool_type: str = "max",
    pool_stride: int | Sequence[int] = 1,
    pool_padding: Any = 0,
    global_pooling: bool = False,
    use_cudnn: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    """The largest value ("max") or the mean ("avg") of windows; of everything with global_pooling. Without
    exclusive a mean is of the whole window, also where ceil_mode cuts it, as here in 1.x. Shape:
    [n, channels, high, wide]."""
    if pool_type not in ("max", "avg"):
        raise Error("config", f'fluid.layers.pool2d(pool_type="{pool_type}")', 'use "max" or "avg"')
    if global_pooling and pool_type == "avg":
        return tensor.mean(input, [2, 3] if data_format == "NCHW" else [1, 2], True)
    if global_pooling:
        # A pool, because of equal values the first alone has a slope there.
        first = input if data_format == "NCHW" else tensor.transpose(input, [0, 3, 1, 2])
        largest = functional.adaptive_max_pool2d(first, 1)
        return largest if data_format == "NCHW" else tensor.transpose(largest, [0, 2, 3, 1])
    if pool_type == "max":
        return functional.max_pool2d(
            input, pool_size, pool_stride, pool_padding, ceil_mode=ceil_mode, data_format=data_format
        )
    if ceil_mode and not exclusive:
        pool_padding, ceil_mode = uncut("fluid.layers.pool2d", pool_padding, pool_stride, 2)
    return avg_pool2d_of_whole(input, pool_size, pool_stride, pool_padding, ceil_mode, exclusive, data_format)


def adaptive_pool2d(
    input: Variable,
    pool_size: int | Sequence[int],
    pool_type: str = "max",
    require_index: bool = False,
    name: str | None = None,
) -> Any:
    """The largest value ("max"; require_index: and where it was) or the mean ("avg") of windows, pool_size of
    them along each axis. Shape: [n, channels, high, wide]."""
    if pool_type not in ("max", "avg"):
        raise Error("config", f'fluid.layers.adaptive_pool2d(pool_type="{pool_type}")', 'use "max" or "avg"')
    if pool_type == "max":
        return functional.adaptive_max_pool2d(input, pool_size, require_index)
    refuse('fluid.layers.adaptive_pool2d(pool_type="avg")', require_index=(require_index, False))
    return functional.adaptive_avg_pool2d(input, pool_size)


def adaptive_pool3d(
    input: Variable,
    pool_size: int | Sequence[int],
    pool_type: str = "max",
    require_index: bool = False,
    name: str | None = None,
) -> Variable:
    """adaptive_pool2d of volumes [n, channels, deep, high, wide]."""
    if pool_type not in ("max", "avg"):
        raise Error("config", f'fluid.layers.adaptive_pool3d(pool_type="{pool_type}")', 'use "max" or "avg"')
    refuse("fluid.layers.adaptive_pool3d", require_index=(require_index, False))
    pool = functional.adaptive_max_pool3d if pool_type == "max" else functional.adaptive_avg_pool3d
    made: Variable = pool(input, pool_size)
    return made


def create_parameter(
    shape: Sequence[int],
    dtype: DTypeLike,
    name: str | None = None,
    attr: ParamLike = None,
    is_bias: bool = False,
    default_initializer: Initializer | None = None,
) -> Variable:
    """A parameter of `shape`."""
    return framework.create_parameter(shape, dtype, name, attr, is_bias, default_initializer)


def create_tensor(dtype: DTypeLike, name: str | None = None, persistable: bool = False) -> Variable:
    """A variable of one value, 0, for others to be assigned to. With a name it has no value before one is
    assigned or fed, as in Paddle."""
    if persistable:
        return inputs.create_global_var([1], 0, dtype, True, name=name)
    if name is None:
        return tensor.full([1], 0, dtype)
    return data(name, [-1], False, dtype, stop_gradient=False)


class Reader:
    """What py_reader() makes: variables that a reader fills, run by run, from start() to its last batch
    (core.EOFException) and reset()."""

    def __init__(self, variables: Sequence[Variable], capacity: int, use_double_buffer: bool = True) -> None:
        self.variables = list(variables)
        self._loader = GeneratorLoader(self.variables, capacity, use_double_buffer, False, False, False, True)
        loader = self._loader
        self.start: Callable[[], None] = loader.start
        self.reset: Callable[[], None] = loader.reset
        self.decorate_paddle_reader = self.decorate_sample_list_generator = loader.set_sample_list_generator
        self.decorate_tensor_provider = self.decorate_batch_generator = loader.set_batch_generator
        self.decorate_sample_generator = loader.set_sample_generator

    @property
    def queue(self) -> Any:
        """The batches that are made ahead: queue.size(), queue.close()."""
        return self._loader.queue


def py_reader(
    capacity: int,
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[DTypeLike],
    lod_levels: Sequence[int] | None = None,
    name: str | None = None,
    use_double_buffer: bool = True,
) -> Reader:
    """A Reader of new variables of these shapes and types; read_file() gives them."""
    made = [
        loose_shapes.declare(inputs.data(framework.unique_name("_generated_var"), shape, dtype, level))
        for shape, dtype, level in zip(shapes, dtypes, lod_levels or [0] * len(shapes))
    ]
    return Reader(made, capacity, use_double_buffer)


def create_py_reader_by_data(
    capacity: int, feed_list: Sequence[Variable], name: str | None = None, use_double_buffer: bool = True
) -> Reader:
    """A Reader of the variables feed_list."""
    return Reader(feed_list, capacity, use_double_buffer)


def double_buffer(reader: Reader, place: Any = None, name: str | None = None) -> Reader:
    """The reader itself: batches are always made ahead."""
    return reader


def read_file(reader: Reader) -> Any:
    """The variables of a Reader: one, or a list."""
    return reader.variables[0] if len(reader.variables) == 1 else reader.variables


def Print(
    input: Variable,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Variable:
    """`input`, whose values are printed when the program runs: paddle.static.Print."""
    return _print(
        input,
        first_n,
        message,
        summarize,
        print_tensor_name,
        print_tensor_type,
        print_tensor_shape,
        print_tensor_lod=print_tensor_lod,
        print_phase=print_phase,
    )

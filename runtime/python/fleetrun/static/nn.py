"""paddle.static.nn: layers as functions that make their own parameters."""

from fleetrun import _lazy, framework, tensor
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun.nn import functional
from fleetrun.static import lookups


def fc(x, size, num_flatten_dims=1, weight_attr=None, bias_attr=None, activation=None, name=None):
    """activation(x @ weight + bias), for a list of inputs the sum of their products.

    The axes from num_flatten_dims on are one; weight[that size, size], bias[size] (bias_attr=False: none).
    """
    layer = name or framework.unique_name("fc")
    inputs = x if isinstance(x, (list, tuple)) else [x]
    attrs = weight_attr if isinstance(weight_attr, (list, tuple)) else [weight_attr] * len(inputs)
    total = None
    for variable, attr in zip(inputs, attrs):
        flat = variable if variable.ndim == num_flatten_dims + 1 else tensor.flatten(variable, num_flatten_dims, -1)
        width = flat.shape[-1]
        if width < 1:
            raise Error("config", f"paddle.static.nn.fc: {variable.name} has the shape {list(variable.shape)}",
                        "the axes from num_flatten_dims on need known sizes")
        weight = framework.make_parameter(layer, [width, size], "float32", attr, False, None, named=True)
        product = functional.linear(flat, weight)
        total = product if total is None else tensor.add(total, product)
    if bias_attr is not False:
        bias = framework.make_parameter(layer, [size], "float32", bias_attr, True, None, named=True)
        total = tensor.add(total, bias)
    return total if activation is None else _activation(activation)(total)


def _activation(name):
    known = {"relu": functional.relu, "sigmoid": functional.sigmoid, "tanh": functional.tanh,
             "softmax": functional.softmax}
    if name not in known:
        raise Error("config", f'paddle.static.nn.fc(activation="{name}") is not supported', f"use one of {', '.join(known)}")
    return known[name]


def embedding(input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None,  # noqa: A002
              dtype="float32"):
    """Rows of a new parameter of `size` [V, width] by id. Shape: input[..] int64 -> [.., width].

    is_sparse: only looked-up rows get gradients, and on servers the table is a sparse one; is_distributed: the same.
    """
    weight = framework.make_parameter("embedding", size, dtype, param_attr, False, None)
    return functional.embedding(input, weight, padding_idx=padding_idx, sparse=is_sparse or is_distributed)


def sparse_embedding(input, size, padding_idx=None, is_test=False, entry=None, table_class="MemorySparseTable",  # noqa: A002
                     param_attr=None, dtype="float32", slot=None):
    """Rows by id from a table without bounds: every id has a row, made on first use by the parameter's initializer.

    size: [any, width]; the first is not a limit. The table lies on the servers, or in this process when there are
    none. Shape: input[batch, 1] int64 -> [batch, width], as Paddle's; other shapes [..] -> [.., width].
    padding_idx: this id gives zeros and has no row; below 0 it counts from size[0]. is_test: the rows are read only.
    entry: CountFilterEntry or ProbabilityEntry say which ids get a row, ShowClickEntry counts shows and clicks in it.
    table_class: SSDSparseTable: cold rows may leave the server's memory for its disk. slot: kept in the row's statistics.
    Throws: Error(config) naming what is not known, and lookups of one parameter that disagree.
    """
    layer = framework.unique_name("sparse_embedding")
    weight = framework.make_parameter(layer, size, dtype, param_attr, False, None, named=True)
    lookups.note(framework.default_main_program(), weight.name, entry, table_class, slot)
    width = int(size[1])
    attributes = {"parameter": weight.name, "width": width, "padding_idx": _padding(padding_idx, size[0])}
    if is_test:
        attributes["is_test"] = True
    rows = framework.append("sparse_embedding", "sparse_embedding", [input], attributes, layer=layer)
    if input.ndim == 2 and input.shape[-1] == 1:
        return tensor.reshape(rows, [0, width])
    return rows


def _padding(padding_idx, rows):
    if padding_idx is None:
        return -1
    return int(padding_idx) if padding_idx >= 0 else int(rows) + int(padding_idx)


def continuous_value_model(input, cvm, use_cvm=True):  # noqa: A002, Paddle's argument name
    """Rows that begin with show and click, with log(show + 1) and log(click + 1) - log(show + 1) in their place.

    use_cvm=False: without the two. cvm[batch, 2]: show and click of each example, the gradient of the two columns.
    Shape: input[n, 2 + width] float32 -> [n, 2 + width], or [n, width].
    """
    return framework.append("continuous_value_model", "cvm", [input, cvm], {"use_cvm": bool(use_cvm)})


def sequence_pool(input, pool_type, is_test=False, pad_value=0.0):  # noqa: A002, Paddle's argument name
    """One row per example of a slot with any number of values: their sum, average, sqrt (sum / sqrt(n)) or max.

    Shape: input[total, width] with lod_level 1 -> [examples, width].
    """
    refuse("paddle.static.nn.sequence_pool", pad_value=(pad_value, 0.0))
    return framework.append("sequence_pool", "sequence_pool", [input], {"pool_type": str(pool_type).lower()})


__getattr__, __dir__ = _lazy.attach(__name__, "paddle.static.nn", {name: f"static.nn:{name}" for name in (
    "fc embedding sparse_embedding sequence_pool continuous_value_model").split()})

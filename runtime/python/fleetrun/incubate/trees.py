"""Layers over a tree of items, of tree-based retrieval models. Nodes are numbered from 1; 0 is none."""

from __future__ import annotations

from fleetrun import _dtypes as dtypes
from fleetrun import framework, tensor
from fleetrun._error import Error
from fleetrun._param_attr import ParamAttr, to_attr
from fleetrun._types import Any, DTypeLike, ParamLike, Sequence, Variable
from fleetrun.nn import initializer

__all__ = ["tdm_child", "tdm_sampler"]


def tdm_child(
    x: Variable, node_nums: int, child_nums: int, param_attr: ParamLike = None, dtype: DTypeLike = "int32"
) -> tuple[Variable, Variable]:
    """(the children of each node, 1 where a child is an item). Shape: x[..] -> [.., child_nums] each.

    The tree is a table [node_nums, 3 + child_nums]: item (0: none), layer, parent, children.
    """
    length = 3 + int(child_nums)
    info = _table("tdm_child", [int(node_nums), length], dtype, param_attr)
    nodes = tensor.reshape(x, [-1])
    rows = tensor.gather(info, nodes)
    children = tensor.slice(rows, [1], [3], [length])
    has = tensor.logical_and(tensor.slice(rows, [1], [3], [4]) != 0, tensor.reshape(nodes, [-1, 1]) != 0)
    children = children * tensor.cast(has, dtypes.name_of(dtype))
    items = tensor.slice(tensor.gather(info, tensor.reshape(children, [-1])), [1], [0], [1])
    leaf = tensor.cast(tensor.reshape(items, [-1, int(child_nums)]) != 0, dtypes.name_of(dtype))
    leaf = leaf * tensor.cast(has, dtypes.name_of(dtype))
    sizes = [size if size >= 0 else tensor.shape(x)[axis] for axis, size in enumerate(x.shape)]
    given = [tensor.reshape(one, [*sizes, int(child_nums)]) for one in (children, leaf)]
    for one in given:
        one.stop_gradient = True
    return given[0], given[1]


def tdm_sampler(
    x: Variable,
    neg_samples_num_list: Sequence[int],
    layer_node_num_list: Sequence[int],
    leaf_node_num: int,
    tree_travel_attr: ParamLike = None,
    tree_layer_attr: ParamLike = None,
    output_positive: bool = True,
    output_list: bool = True,
    seed: int = 0,
    tree_dtype: DTypeLike = "int32",
    dtype: DTypeLike = "int32",
) -> tuple[Any, Any, Any]:
    """(nodes, labels, mask): of each layer the node on the item's way, whose label is 1, and so many others,
    whose label is 0; mask 0 where the way ends higher. Shape: x[n, 1] -> [n, samples] each; output_list: of
    each layer [n, samples of it, 1]. The samples are others than Paddle's for the same seed.

    Throws: Error(config) for lists that disagree, or more samples than a layer has nodes.
    """
    layers = len(layer_node_num_list)
    if len(neg_samples_num_list) != layers:
        raise Error(
            "config",
            f"tdm_sampler: neg_samples_num_list has {len(neg_samples_num_list)} layers, "
            f"layer_node_num_list {layers}",
            "give both a number for each layer below the root",
        )
    offsets = [sum(map(int, layer_node_num_list[:layer])) for layer in range(layers + 1)]
    travel = _table("tdm_sampler", [int(leaf_node_num), layers], tree_dtype, tree_travel_attr)
    nodes = _table("tdm_sampler", [offsets[-1], 1], tree_dtype, tree_layer_attr)
    attributes = {
        "neg_samples_num_list": [int(one) for one in neg_samples_num_list],
        "layer_offset_lod": offsets,
        "output_positive": bool(output_positive),
        "seed": int(seed),
        "dtype": dtypes.name_of(dtype),
    }
    outputs = framework.temporaries(framework.unique_name("tdm_sampler"), 3)
    made = framework.append("tdm_sampler", "tdm_sampler", [x, travel, nodes], attributes, outputs)
    for one in made:
        one.stop_gradient = True
    if not output_list:
        return made[0], made[1], made[2]
    sizes = [int(one) + bool(output_positive) for one in neg_samples_num_list]
    parts = [
        [tensor.reshape(part, [-1, size, 1]) for part, size in zip(tensor.split(one, sizes, 1), sizes)]
        for one in made
    ]
    for part in sum(parts, []):
        part.stop_gradient = True
    return parts[0], parts[1], parts[2]


def _table(layer: str, shape: list[int], dtype: DTypeLike, attr: ParamLike) -> Variable:
    """Whole numbers that the program keeps, and no optimizer changes."""
    told = to_attr(attr, f"paddle.incubate.layers.{layer}") or ParamAttr()
    name = told.name or framework.unique_name(layer + ".w")
    main, startup = framework.default_main_program(), framework.default_startup_program()
    kind = dtypes.name_of(dtype)
    if not main.has_var(name):
        main.native.add_variable(name, kind, shape, persistable=True)
    found = main.var(name)
    if list(found.shape) != shape:
        raise Error(
            "config",
            f"paddle.incubate.layers.{layer}: {name} has the shape {list(found.shape)}, and {shape} is asked "
            "for",
            "give one of the two another name in ParamAttr",
        )
    if not startup.has_var(name):
        startup.native.add_variable(name, found.dtype.name, shape, persistable=True)
        first = told.initializer or initializer.Constant(0.0)
        first.append(startup, name, shape, found.dtype.name)
    return found

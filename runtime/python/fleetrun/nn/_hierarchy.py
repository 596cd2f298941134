"""Losses over many classes of which each example costs a few: a binary tree of classes."""

from __future__ import annotations

import numpy

from fleetrun import framework, tensor
from fleetrun._error import Error
from fleetrun._types import Variable
from fleetrun.nn import functional


def hsigmoid_loss(
    input: Variable,
    label: Variable,
    num_classes: int,
    weight: Variable,
    bias: Variable | None = None,
    path_table: Variable | None = None,
    path_code: Variable | None = None,
    is_sparse: bool = False,
    name: str | None = None,
) -> Variable:
    """The cost of finding each label's way from the root of a tree of classes: a decision at each node.

    The tree is the complete binary one, or has for each example its nodes in path_table[n, length] (below 0:
    none) and the decisions in path_code[n, length]. A node that a way has not costs log(2), as in Paddle.
    Shape: input[n, width], label[n, 1] int64, weight[nodes, width], bias[nodes, 1] -> [n, 1]. Source: Morin
    and Bengio, Hierarchical probabilistic neural network language model, 2005.
    """
    if (path_table is None) != (path_code is None):
        raise Error("config", "hsigmoid_loss: one of path_table and path_code", "give it both, or neither")
    if path_table is None or path_code is None:
        nodes, code = _complete(tensor.reshape(label, [-1, 1]), int(num_classes))
    else:
        nodes, code = tensor.cast(path_table, "int64"), tensor.cast(path_code, "float32")
    there = tensor.cast(nodes >= 0, "float32")
    places = tensor.maximum(nodes, tensor.full([1], 0, "int64"))
    # [n, length, width] times [n, width, 1]
    product = tensor.matmul(_rows(weight, places, is_sparse), tensor.unsqueeze(input, 2))
    score = tensor.squeeze(product, 2)
    if bias is not None:
        score = score + tensor.squeeze(_rows(bias, places, is_sparse), 2)
    score = tensor.clip(score, -40.0, 40.0) * there
    return tensor.sum(functional.softplus(score) - code * score, 1, keepdim=True)


def _complete(label, classes):
    """(nodes, decisions) on the ways to the labels in the complete binary tree."""
    length = max((classes - 1).bit_length(), 1)
    powers = tensor.assign(numpy.array([[1 << k for k in range(length)]], dtype="int64"))
    place = tensor.cast(label, "int64") + classes
    below = tensor.floor_divide(place, powers)
    nodes = tensor.floor_divide(below, tensor.full([1], 2, "int64")) - 1
    code = tensor.cast(tensor.mod(below, tensor.full([1], 2, "int64")), "float32")
    return nodes, code


def _rows(weight, places, is_sparse):
    attributes = {"is_sparse": bool(is_sparse), "padding_idx": -1}
    return framework.append("rows_of_nodes", "embedding", [weight, places], attributes)

"""The dense part of a program as an ONNX model: export(). Needs the package `onnx`, which nothing else of
fleetrun does.

Source: the operators' definitions at https://onnx.ai/onnx/operators, opset 13.
"""

import os

import numpy

from fleetrun import framework
from fleetrun._error import Error
from fleetrun._types import Any, Fetches, Program
from fleetrun.static.io import names_of

__all__ = ["export"]

_OPSET = 13
_TYPES = {"float32": 1, "int32": 6, "int64": 7, "bool": 9, "float64": 11}
_SAME = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "log": "Log",
    "exp": "Exp",
    "sqrt": "Sqrt",
    "reciprocal": "Reciprocal",
    "abs": "Abs",
    "softsign": "Softsign",
    "assign": "Identity",
    "elementwise_add": "Add",
    "elementwise_sub": "Sub",
    "elementwise_mul": "Mul",
    "elementwise_div": "Div",
    "elementwise_max": "Max",
    "elementwise_min": "Min",
    "elementwise_pow": "Pow",
    "equal": "Equal",
    "less_than": "Less",
    "less_equal": "LessOrEqual",
    "greater_than": "Greater",
    "greater_equal": "GreaterOrEqual",
    "logical_and": "And",
    "logical_or": "Or",
    "logical_not": "Not",
    "where": "Where",
    "add_n": "Sum",
}


def export(path: str, feed_vars: Fetches, fetch_vars: Fetches, program: Program | None = None) -> None:
    """Writes what computes fetch_vars from feed_vars to `path` (.onnx), for test; parameters have the values
    of the scope.

    feed_vars: any variables of the program, so that what sparse_embedding or sequence_pool give can be fed
    where the rest is to be exported. Throws: Error(config) naming the operator that ONNX has no word for
    here, the input that is missing, or the package that is; Error(host).
    """
    onnx = _package()
    program = program or framework.default_main_program()
    feeds, fetches = names_of(feed_vars), names_of(fetch_vars)
    native = program.native.clone_for_test()
    needed, kept = set(fetches), []
    for name in (*feeds, *fetches):
        native.variable(name)
    for op in reversed(native.operators()):
        if needed.difference(feeds).intersection(op.outputs):
            needed.update(name for name in op.inputs if name)
            kept.append(op)
    graph = _Graph(onnx, native, feeds)
    for name in sorted(needed.difference(feeds)):
        graph.take_parameter(name)
    for op in reversed(kept):
        graph.add(op)
    model = onnx.helper.make_model(
        graph.finish(fetches),
        producer_name="fleetrun",
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=8,
    )
    onnx.checker.check_model(model, full_check=True)
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        onnx.save(model, path + ".new")
        os.replace(path + ".new", path)
    except OSError as error:
        raise Error(
            "host", f"{path} cannot be written: {error.strerror}", "choose a directory that can be written"
        ) from error


def _package():
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise Error(
            "config", "paddle.onnx.export needs the package onnx, which is not installed", "pip install onnx"
        ) from error
    return onnx


class _Graph:
    """Nodes and values of a graph that grows by operators of a program."""

    def __init__(self, onnx, native, feeds):
        self._onnx = onnx
        self._native = native
        self._feeds = feeds
        self._nodes = []
        self._values = []
        self._count = 0

    def take_parameter(self, name):
        """The value that the scope has for a parameter; anything else that has to be fed is refused."""
        variable = self._native.variable(name)
        scope = framework.global_scope().native
        if variable.is_data:
            raise Error(
                "config",
                f"paddle.onnx.export: the model reads {name}, which is not among its inputs {self._feeds}",
                "add it to feed_vars, or fetch what does not need it",
            )
        if variable.persistable:
            if not scope.has(name):
                raise Error(
                    "config",
                    f"paddle.onnx.export: {name} has no value",
                    "run the start-up program first, or load the model",
                )
            self._values.append(self._onnx.numpy_helper.from_array(numpy.asarray(scope.value(name)), name))

    def add(self, op):
        """The nodes of an operator."""
        if op.type in _SAME and op.attributes.get("axis", -1) == -1:
            self.node(_SAME[op.type], [name for name in op.inputs if name], op.outputs[0])
            return
        writer = globals().get("_write_" + op.type)
        if writer is None or any(
            name.endswith("_from") for name in op.attributes
        ):  # sizes that are variables
            raise Error(
                "config",
                f"paddle.onnx.export: {op.type}, which makes {op.outputs[0]}, cannot be exported",
                "feed what it makes: add that variable to feed_vars",
            )
        writer(self, op)

    def node(self, kind, inputs, output=None, **attributes):
        """Adds a node; returns its output's name."""
        output = output or self.name()
        outputs = output if isinstance(output, list) else [output]
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, outputs, **attributes))
        return output

    def constant(self, values, dtype):
        """The name of a constant tensor."""
        name = self.name()
        self._values.append(self._onnx.numpy_helper.from_array(numpy.asarray(values, dtype=dtype), name))
        return name

    def shape(self, name):
        """Sizes of a variable; -1 for one that is not known."""
        return list(self._native.variable(name).shape)

    def type(self, name):
        """A variable's type, as numpy has it."""
        return self._native.variable(name).type

    def name(self):
        """A name that no variable has."""
        self._count += 1
        return f"onnx_{self._count}"

    def finish(self, fetches):
        """The graph."""
        info = lambda name: self._onnx.helper.make_tensor_value_info(  # noqa: E731
            name,
            _TYPES[self.type(name)],
            [size if size >= 0 else f"{name}_{axis}" for axis, size in enumerate(self.shape(name))],
        )
        return self._onnx.helper.make_graph(
            self._nodes,
            "fleetrun",
            [info(name) for name in self._feeds],
            [info(name) for name in fetches],
            self._values,
        )


def _write_linear(graph, op):
    product = graph.node(
        "MatMul", op.inputs[:2], None if len(op.inputs) > 2 and op.inputs[2] else op.outputs[0]
    )
    if len(op.inputs) > 2 and op.inputs[2]:
        graph.node("Add", [product, op.inputs[2]], op.outputs[0])


def _write_matmul(graph, op):
    factors = []
    for name, flag in zip(op.inputs, ("transpose_x", "transpose_y")):
        axes = list(range(len(graph.shape(name))))
        axes[-2:] = reversed(axes[-2:])
        factors.append(graph.node("Transpose", [name], perm=axes) if op.attributes.get(flag) else name)
    graph.node("MatMul", factors, op.outputs[0])


def _write_square(graph, op):
    graph.node("Mul", [op.inputs[0], op.inputs[0]], op.outputs[0])


def _write_rsqrt(graph, op):
    graph.node("Reciprocal", [graph.node("Sqrt", op.inputs)], op.outputs[0])


def _write_log1p(graph, op):
    graph.node("Log", [graph.node("Add", [op.inputs[0], graph.constant(1, "float32")])], op.outputs[0])


def _write_leaky_relu(graph, op):
    graph.node("LeakyRelu", op.inputs, op.outputs[0], alpha=op.attributes.get("alpha", 0.01))


def _write_pow(graph, op):
    graph.node(
        "Pow", [op.inputs[0], graph.constant(op.attributes.get("factor", 1.0), "float32")], op.outputs[0]
    )


def _write_not_equal(graph, op):
    graph.node("Not", [graph.node("Equal", op.inputs)], op.outputs[0])


def _write_scale(graph, op):
    dtype = graph.type(op.inputs[0])
    scale = graph.constant(op.attributes.get("scale", 1.0), dtype)
    bias = graph.constant(op.attributes.get("bias", 0.0), dtype)
    if op.attributes.get("bias_after_scale", True):
        graph.node("Add", [graph.node("Mul", [op.inputs[0], scale]), bias], op.outputs[0])
    else:
        graph.node("Mul", [graph.node("Add", [op.inputs[0], bias]), scale], op.outputs[0])


def _write_clip(graph, op):
    limits = [
        graph.constant(op.attributes[name], "float32") if name in op.attributes else ""
        for name in ("min", "max")
    ]
    graph.node("Clip", [op.inputs[0], *limits], op.outputs[0])


def _write_dropout(graph, op):
    if op.attributes.get("mode", "upscale_in_train") == "upscale_in_train":
        graph.node("Identity", op.inputs, op.outputs[0])
    else:
        kept = 1.0 - op.attributes.get("dropout_prob", op.attributes.get("p", 0.5))
        graph.node("Mul", [op.inputs[0], graph.constant(kept, "float32")], op.outputs[0])


def _write_cast(graph, op):
    graph.node("Cast", op.inputs, op.outputs[0], to=_TYPES[graph.type(op.outputs[0])])


def _write_fill_any_like(graph, op):
    value = graph.constant(op.attributes.get("value", 0.0), graph.type(op.outputs[0]))
    graph.node("Expand", [value, graph.node("Shape", op.inputs)], op.outputs[0])


def _write_embedding(graph, op):
    if op.attributes.get("padding_idx", -1) >= 0:
        raise Error(
            "config",
            f"paddle.onnx.export: the embedding that makes {op.outputs[0]} has a padding_idx",
            "feed what it makes: add that variable to feed_vars",
        )
    graph.node("Gather", op.inputs[:2], op.outputs[0], axis=0)


def _write_concat(graph, op):
    graph.node("Concat", op.inputs, op.outputs[0], axis=op.attributes.get("axis", 0))


def _write_stack(graph, op):
    axis = op.attributes.get("axis", 0)
    axis += len(graph.shape(op.outputs[0])) if axis < 0 else 0
    place = graph.constant([axis], "int64")
    graph.node(
        "Concat", [graph.node("Unsqueeze", [name, place]) for name in op.inputs], op.outputs[0], axis=axis
    )


def _write_split(graph, op):
    axis = op.attributes.get("axis", 0)
    sizes = [graph.shape(name)[axis] for name in op.outputs]
    if min(sizes) < 0:
        graph.node("Split", op.inputs, list(op.outputs), axis=axis)
    else:
        graph.node("Split", [op.inputs[0], graph.constant(sizes, "int64")], list(op.outputs), axis=axis)


def _write_reshape(graph, op):
    graph.node("Reshape", [op.inputs[0], graph.constant(op.attributes["shape"], "int64")], op.outputs[0])


def _write_flatten(graph, op):
    rank = len(graph.shape(op.inputs[0]))
    start, stop = op.attributes.get("start_axis", 0) % rank, op.attributes.get("stop_axis", -1) % rank
    kept = graph.shape(op.inputs[0])[stop + 1 :]
    if min(kept, default=0) < 0:
        raise Error(
            "config",
            f"paddle.onnx.export: flatten of {op.inputs[0]} keeps sizes that are not known",
            "reshape it instead",
        )
    graph.node("Reshape", [op.inputs[0], graph.constant([0] * start + [-1] + kept, "int64")], op.outputs[0])


def _write_squeeze(graph, op):
    axes = op.attributes.get("axes") or [
        axis for axis, size in enumerate(graph.shape(op.inputs[0])) if size == 1
    ]
    shape = graph.shape(op.inputs[0])
    if not op.attributes.get("picks"):
        axes = [axis for axis in axes if shape[axis] == 1]
    graph.node("Squeeze", [op.inputs[0], graph.constant(axes, "int64")], op.outputs[0])


def _write_unsqueeze(graph, op):
    graph.node("Unsqueeze", [op.inputs[0], graph.constant(op.attributes["axes"], "int64")], op.outputs[0])


def _write_transpose(graph, op):
    graph.node("Transpose", op.inputs, op.outputs[0], perm=op.attributes["perm"])


def _write_slice(graph, op):
    limits = [graph.constant(op.attributes[name], "int64") for name in ("starts", "ends", "axes")]
    steps = [graph.constant(op.attributes["steps"], "int64")] if "steps" in op.attributes else []
    graph.node("Slice", [op.inputs[0], *limits, *steps], op.outputs[0])


def _reduced(kind):
    def write(graph, op):
        axes = op.attributes.get("axis", [])
        axes = axes if isinstance(axes, list) else [axes]
        keep = bool(op.attributes.get("keepdim", False))
        inputs = [op.inputs[0]]
        attributes: dict[str, Any] = {"keepdims": int(keep)}
        if kind == "ReduceSum":
            inputs += [graph.constant(axes, "int64")] if axes else []
        elif axes:
            attributes["axes"] = axes
        graph.node(kind, inputs, op.outputs[0], **attributes)

    return write


_write_mean, _write_sum, _write_max = _reduced("ReduceMean"), _reduced("ReduceSum"), _reduced("ReduceMax")


def _write_softmax(graph, op):
    graph.node("Softmax", op.inputs, op.outputs[0], axis=-1)

"""LayerHelper.append_op: operators of Paddle that layers and metrics of scripts append by their types, made
by the functions of fluid.layers that compute them."""

from __future__ import annotations

from fleetrun import tensor
from fleetrun._error import Error
from fleetrun._types import Any, Callable, Mapping, Variable
from fleetrun.fluid import layers
from fleetrun.fluid._appended_calls import CALLS
from fleetrun.nn import functional

__all__ = ["append_op"]

_ELEMENTWISE = ("add", "sub", "mul", "div", "max", "min", "pow", "mod", "floordiv")
_REDUCE = ("sum", "mean", "max", "min", "prod", "all", "any")
_UNARY = (
    "abs", "ceil", "cos", "exp", "floor", "log", "logical_not", "mean", "ones_like", "reciprocal", "relu",
    "round", "rsqrt", "sigmoid", "sign", "sin", "softplus", "softsign", "sqrt", "square", "tanh",
    "zeros_like",
)  # fmt: skip
_COMPARE = (
    "equal", "greater_equal", "greater_than", "less_equal", "less_than", "logical_and", "logical_or",
    "not_equal",
)  # fmt: skip

Values = Mapping[str, Any]
# Outputs that nothing but a gradient operator of Paddle reads.
_LEFT_OUT = ("XShape", "Mask")


def _of_reduce(name: str) -> Callable[[Values, Values], Variable]:
    function = getattr(layers, "reduce_" + name)
    return lambda of, attrs: function(
        of["X"], None if attrs.get("reduce_all") else attrs.get("dim"), attrs.get("keep_dim", False)
    )


def _of_binary(name: str) -> Callable[[Values, Values], Variable]:
    function = getattr(layers, name)
    return lambda of, attrs: function(of["X"], of["Y"], attrs.get("axis", -1))


def _of_two(name: str) -> Callable[[Values, Values], Variable]:
    function = getattr(layers, name)
    return lambda of, attrs: function(of["X"], of["Y"])


def _of_one(name: str) -> Callable[[Values, Values], Variable]:
    function = getattr(layers, name)
    return lambda of, attrs: function(of["X"])


def _listed(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _filled(of, attrs):
    return tensor.full(attrs.get("shape", [1]), attrs.get("value", 0.0), attrs.get("dtype", "float32"))


def _assigned(attrs):
    kinds = ("fp32", "int32", "int64", "bool")
    values: Any = next((attrs[kind + "_values"] for kind in kinds if attrs.get(kind + "_values")), [])
    return tensor.reshape(tensor.to_tensor(values, attrs.get("dtype")), attrs["shape"])


def _rows(of, attrs, last_is_one):
    """The rows W of the ids, whose last axis is one in 1.x."""
    ids = tensor.squeeze(of["Ids"], [-1]) if last_is_one else of["Ids"]
    place = attrs.get("padding_idx", -1)
    return functional.embedding(ids, of["W"], None if place == -1 else place, attrs.get("is_sparse", False))


def _of_shape(name: str) -> Callable[[Values, Values], Variable]:
    function = getattr(tensor, name)
    attribute = {"reshape": "shape", "transpose": "axis"}.get(name, "axes")
    return lambda of, attrs: function(of["X"], attrs[attribute])


def _table() -> dict[str, Callable[[Values, Values], Any]]:
    return {
        **{"elementwise_" + name: _of_binary("elementwise_" + name) for name in _ELEMENTWISE},
        **{"reduce_" + name: _of_reduce(name) for name in _REDUCE},
        **{name: _of_one(name) for name in _UNARY},
        **{name: _of_two(name) for name in _COMPARE},
        "assign": lambda of, attrs: tensor.assign(of["X"]),
        "assign_value": lambda of, attrs: _assigned(attrs),
        "cast": lambda of, attrs: tensor.cast(of["X"], attrs["out_dtype"]),
        "clip": lambda of, attrs: tensor.clip(of["X"], attrs["min"], attrs["max"]),
        "concat": lambda of, attrs: tensor.concat(_listed(of["X"]), attrs.get("axis", 0)),
        "fill_constant": _filled,
        "gather": lambda of, attrs: tensor.gather(of["X"], of["Index"]),
        "increment": lambda of, attrs: of["X"] + attrs.get("step", 1.0),
        "matmul": lambda of, attrs: layers.matmul(
            of["X"],
            of["Y"],
            attrs.get("transpose_X", False),
            attrs.get("transpose_Y", False),
            attrs.get("alpha", 1.0),
        ),
        "matmul_v2": lambda of, attrs: tensor.matmul(
            of["X"], of["Y"], attrs.get("trans_x", False), attrs.get("trans_y", False)
        ),
        "mul": lambda of, attrs: layers.mul(
            of["X"], of["Y"], attrs.get("x_num_col_dims", 1), attrs.get("y_num_col_dims", 1)
        ),
        "lookup_table": lambda of, attrs: _rows(of, attrs, of["Ids"].shape[-1:] == (1,)),
        "lookup_table_v2": lambda of, attrs: _rows(of, attrs, False),
        **{name: _of_shape(name) for name in ("reshape", "squeeze", "transpose", "unsqueeze")},
        **{name + "2": _of_shape(name) for name in ("reshape", "squeeze", "transpose", "unsqueeze")},
        "scale": lambda of, attrs: tensor.scale(
            of["X"],
            attrs.get("scale", 1.0),
            attrs.get("bias", 0.0),
            attrs.get("bias_after_scale", True),
        ),
        "sgd": _sgd,
        "squared_l2_norm": lambda of, attrs: tensor.reshape(tensor.sum(tensor.square(of["X"])), [1]),
        "stack": lambda of, attrs: tensor.stack(_listed(of["X"]), attrs.get("axis", 0)),
        "sum": lambda of, attrs: tensor.add_n(_listed(of["X"])),
    }


def _sgd(of, attrs):
    return of["Param"] - of["LearningRate"] * of["Grad"]


def append_op(
    type: str, inputs: Values | None = None, outputs: Values | None = None, attrs: Values | None = None
) -> None:
    """Computes an operator of Paddle into its outputs. inputs, outputs: variables, or lists of them, by slot.
    Throws: Error(config) naming an operator that there is not, or outputs, slots and attributes that are not
    its."""
    given: dict[str, Any] = {}
    for slot, value in (inputs or {}).items():
        single = isinstance(value, (list, tuple)) and len(value) == 1
        given[slot] = value[0] if single else value
    call, table = CALLS.get(type), _table()
    if call is not None:
        wanted = {slot: value for slot, value in (outputs or {}).items() if slot not in call.left_out}
        made = dict(zip((slot.rstrip("*") for slot in call.outputs), call.of(type, given, attrs or {})))
    elif type in table:
        wanted = {slot: value for slot, value in (outputs or {}).items() if slot not in _LEFT_OUT}
        made = {slot: [table[type](given, attrs or {})] for slot in wanted}
    else:
        raise Error(
            "config",
            f"append_op(type={type!r}): there is no such operator here to append by its type",
            "use the function of paddle that computes it; by type there are "
            + ", ".join(sorted({*table, *CALLS})),
        )
    targets = [(slot, one) for slot, value in wanted.items() for one in _listed(value)]
    if not targets or call is None and len(targets) != 1:
        raise Error(
            "config",
            f"append_op(type={type!r}) of {len(targets)} outputs, and the operator has one",
            "give it outputs={'Out': variable}",
        )
    for slot, value in wanted.items():
        into = _listed(value)
        if len(made.get(slot, ())) != len(into):
            raise Error(
                "config",
                f"append_op(type={type!r}, outputs={{{slot!r}: {len(into)} variables}}): it makes "
                f"{len(made.get(slot, ()))} of this slot",
                f"its outputs are {', '.join(made)}",
            )
        for one, target in zip(made[slot], into):
            tensor.assign(one, target)

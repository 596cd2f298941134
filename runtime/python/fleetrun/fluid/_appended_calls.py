"""Operators of Paddle that are one call each: their slots and attributes, and the arguments that these are of
the function of fluid.layers that computes them. _by_type.py has those that need more."""

from __future__ import annotations

import inspect
from typing import NamedTuple

from fleetrun import tensor
from fleetrun._error import Error
from fleetrun._types import Any, Callable, Mapping
from fleetrun.fluid import _decoding, _images, _losses, _math, _odd_layers, _renamed
from fleetrun.fluid._operator import Operator
from fleetrun.nn import functional
from fleetrun.static import sequence_lod

__all__ = ["Call", "CALLS"]

# OPERATOR[@FUNCTION]: SLOT=ARGUMENT … [; ATTRIBUTE=ARGUMENT …] -> SLOT …, in the order of what the function
# returns; `*` behind an argument that is a list. Attributes named as an argument are not listed.
_LINES = """
bpr_loss: X=input Label=label -> Y
clip_by_norm: X=x -> Out
cosh: X=x -> Out
expand_as: X=x target_tensor=target_tensor -> Out
eye: -> Out
flip: X=input; axis=dims -> Out
gather_tree: Ids=ids Parents=parents -> Out
index_sample: X=x Index=index -> Out
isfinite: X=x -> Out
kldiv_loss: X=x Target=target -> Loss
kron: X=x Y=y -> Out
label_smooth: X=label PriorDist=prior_dist -> Out
margin_rank_loss: Label=label X1=left X2=right -> Out
mean_iou: Predictions=input Labels=label -> OutMeanIou OutWrong OutCorrect
multiplex: X=inputs* Ids=index -> Out
pixel_shuffle: X=x -> Out
rank_loss: Label=label Left=left Right=right -> Out
reverse: X=x -> Out
scatter_nd_add: X=ref Index=index Updates=updates -> Out
sequence_expand_as: X=x Y=y -> Out
sequence_mask: X=x; out_dtype=dtype -> Y
sequence_pad: X=x PadValue=pad_value; padded_length=maxlen -> Out Length
sequence_reverse: X=x -> Y
sequence_unpad: X=x Length=length -> Out
shuffle_channel: X=x -> Out
sinh: X=x -> Out
size: Input=input -> Out
smooth_l1_loss@smooth_l1: X=x Y=y InsideWeight=inside_weight OutsideWeight=outside_weight -> Out
soft_relu: X=x -> Out
thresholded_relu: X=x -> Out
unique: X=x -> Out Index
where_index@where: Condition=condition -> Out
"""

# Attributes that say how, where or for whom Paddle computes, and none of which changes what.
_BESIDE = {
    "data_format", "data_layout", "decrease_axis", "exhaustive_search", "fix_seed", "force_cpu",
    "fuse_relu_before_depthwise_conv", "infer_flags", "is_test", "mkldnn_data_type", "numeric_stable_mode",
    "padding_algorithm", "remove_last_axis", "trainable", "use_cudnn", "use_mkldnn", "use_quantizer",
    "with_quant_attr", "workspace_size_MB",
}  # fmt: skip
# Values of some of them that change nothing; other values are refused where no argument takes them.
_UNCHANGING: Mapping[str, Any] = {
    "data_format": ("NCHW", "AnyLayout"),
    "data_layout": ("NCHW", "AnyLayout"),
    "decrease_axis": ([], ()),
    "padding_algorithm": ("EXPLICIT",),
}


class Call(NamedTuple):
    """One line of the table. slots, attributes: their arguments; lists: arguments that are lists; outputs:
    slots in the order of what the function returns."""

    function: Callable[..., Any]
    slots: dict[str, str]
    lists: frozenset[str]
    attributes: dict[str, str]
    outputs: list[str]

    def of(self, op: Operator) -> Any:
        """What it computes. Throws: Error(config) naming a slot or an attribute that it has no argument
        for."""
        known = inspect.signature(self.function).parameters
        arguments = {}
        for slot, listed in op.inputs.items():
            argument = self.slots.get(slot)
            if argument is None:
                raise Error(
                    "config", f"append_op(type={op.type!r}, inputs={{{slot!r}: …}}): it has no such slot"
                )
            if listed:
                arguments[argument] = list(listed) if argument in self.lists else listed[0]
        for name, value in op.attrs.items():
            argument = self.attributes.get(name, name)
            if argument in known:
                arguments[argument] = value
            elif name in _BESIDE and value in _UNCHANGING.get(name, (value,)) or name.startswith("op_"):
                continue
            else:
                raise Error(
                    "config",
                    f"append_op(type={op.type!r}, attrs={{{name!r}: {value!r}}}) is not supported",
                    "use the function of paddle that computes it",
                )
        return self.function(**arguments)


def _function(name: str) -> Callable[..., Any]:
    # Not by fluid.layers, which is loaded where a script of 1.x asks for it (_mode.is_of_1x).
    homes = (_math, _losses, _renamed, _images, _odd_layers, _decoding, sequence_lod, functional, tensor)
    found: Callable[..., Any] = next(getattr(home, name) for home in homes if hasattr(home, name))
    return found


def _call(line: str) -> tuple[str, Call]:
    head, _, rest = line.partition(":")
    type, _, name = head.partition("@")
    taken, _, made = rest.partition("->")
    slots, _, attributes = taken.partition(";")
    pairs = dict(pair.split("=") for pair in slots.split())
    return type, Call(
        _function(name or type),
        {slot: argument.rstrip("*") for slot, argument in pairs.items()},
        frozenset(argument[:-1] for argument in pairs.values() if argument.endswith("*")),
        dict(pair.split("=") for pair in attributes.split()),
        made.split(),
    )


CALLS: dict[str, Call] = dict(_call(line) for line in _LINES.strip().splitlines())

"""Operators of Paddle that append_op makes by one call each: their slots and attributes, and the arguments
that these are of the function of fluid.layers that computes them."""

from __future__ import annotations

import inspect
from typing import NamedTuple

from fleetrun import tensor
from fleetrun._error import Error
from fleetrun._types import Any, Callable, Mapping
from fleetrun.fluid import layers
from fleetrun.nn import functional

__all__ = ["Call", "CALLS"]

# OPERATOR[@FUNCTION]: SLOT=ARGUMENT … [; ATTRIBUTE=ARGUMENT …] -> SLOT …; a slot in brackets is there for
# Paddle's gradient alone. Attributes named as an argument are not listed. FUNCTION: nn.NAME of functional,
# t.NAME of fleetrun.tensor, otherwise of fluid.layers.
_LINES = """
acos: X=x -> Out
arg_max@argmax: X=x -> Out
arg_min@argmin: X=x -> Out
argsort: X=input -> Out Indices
asin: X=x -> Out
atan: X=x -> Out
bmm: X=x Y=y -> Out
bpr_loss: X=input Label=label -> Y
brelu: X=x -> Out
clip_by_norm: X=x -> Out
conv2d@nn.conv2d: Input=x Filter=weight; strides=stride paddings=padding dilations=dilation -> Output
cos_sim: X=X Y=Y -> Out [XNorm] [YNorm]
cosh: X=x -> Out
cross_entropy: X=input Label=label -> Y
cross_entropy2@cross_entropy: X=input Label=label -> Y [MatchX] [XShape]
cumsum: X=x -> Out
dot: X=x Y=y -> Out
dropout: X=x -> Out [Mask]
elu: X=x -> Out
erf: X=x -> Out
expand: X=x -> Out
expand_as: X=x target_tensor=target_tensor -> Out
eye: -> Out
fill_any_like@t.full_like: X=x; value=fill_value -> Out
fill_constant_batch_size_like: Input=input -> Out
fill_zeros_like@zeros_like: X=x -> Out
flatten: X=x -> Out
flatten2@flatten: X=x -> Out [XShape]
flatten_contiguous_range@t.flatten: X=x -> Out [XShape]
flip: X=input; axis=dims -> Out
gather_nd: X=input Index=index -> Out
gather_tree: Ids=ids Parents=parents -> Out
gaussian_random: -> Out
gelu: X=x -> Out
hard_shrink: X=x -> Out
hard_sigmoid: X=x -> Out
hard_swish: X=x -> Out
huber_loss: X=input Y=label -> Out [Residual]
index_sample: X=x Index=index -> Out
index_select: X=input Index=index -> Out
isfinite: X=x -> Out
kldiv_loss: X=x Target=target -> Loss
kron: X=x Y=y -> Out
label_smooth: X=label PriorDist=prior_dist -> Out
leaky_relu: X=x -> Out
log_loss: Predicted=input Labels=label -> Loss
logical_xor: X=x Y=y -> Out
logsigmoid: X=x -> Out
margin_rank_loss: Label=label X1=left X2=right -> Out [Activated]
maxout: X=x -> Out
mean_iou: Predictions=input Labels=label -> OutMeanIou OutWrong OutCorrect
multiplex: X=inputs* Ids=index -> Out
one_hot: X=input -> Out
one_hot_v2@nn.one_hot: X=x; depth=num_classes -> Out
pad: X=x -> Out
pad2d: X=input -> Out
pixel_shuffle: X=x -> Out
pool2d: X=input; pooling_type=pool_type ksize=pool_size strides=pool_stride paddings=pool_padding -> Out
pow: X=x -> Out
rank_loss: Label=label Left=left Right=right -> Out
relu6: X=x -> Out
reverse: X=x -> Out
scatter: X=input Ids=index Updates=updates -> Out
scatter_nd_add: X=ref Index=index Updates=updates -> Out
sequence_concat: X=input* -> Out
sequence_expand: X=x Y=y -> Out
sequence_expand_as: X=x Y=y -> Out
sequence_mask: X=x; out_dtype=dtype -> Y
sequence_pad: X=x PadValue=pad_value; padded_length=maxlen -> Out Length
sequence_pool: X=input; pooltype=pool_type -> Out [MaxIndex]
sequence_reverse: X=x -> Y
sequence_softmax: X=input -> Out
sequence_unpad: X=x Length=length -> Out
shape: Input=input -> Out
shuffle_channel: X=x -> Out
sigmoid_cross_entropy_with_logits: X=x Label=label -> Out
sinh: X=x -> Out
size: Input=input -> Out
slice: Input=input -> Out
smooth_l1_loss@smooth_l1: X=x Y=y InsideWeight=inside_weight OutsideWeight=outside_weight -> Out [Diff]
soft_relu: X=x -> Out
softmax: X=input -> Out
softmax_with_cross_entropy: Logits=logits Label=label -> Loss Softmax
softshrink: X=x; lambda=alpha -> Out
split: X=input; axis=dim num=num_or_sections sections=num_or_sections -> Out*
stanh: X=x -> Out
strided_slice: Input=input -> Out
swish: X=x -> Out
tanh_shrink: X=x -> Out
thresholded_relu: X=x -> Out
tile@t.tile: X=x -> Out
top_k@topk: X=input -> Out Indices
top_k_v2@t.topk: X=x -> Out Indices
uniform_random: -> Out
unique: X=x -> Out Index
unstack: X=x -> Y*
where@t.where: Condition=condition X=x Y=y -> Out
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
    slots in the order of what the function returns, `*` behind one that takes all of it."""

    function: Callable[..., Any]
    slots: dict[str, str]
    lists: frozenset[str]
    attributes: dict[str, str]
    outputs: list[str]
    left_out: frozenset[str]

    def of(self, type: str, given: Mapping[str, Any], attrs: Mapping[str, Any]) -> list[Any]:
        """What it computes, a list for each of `outputs`. Throws: Error(config) naming a slot or an
        attribute that it has no argument for."""
        known = inspect.signature(self.function).parameters
        arguments = {}
        for slot, value in given.items():
            argument = self.slots.get(slot)
            if argument is None:
                raise Error(
                    "config", f"append_op(type={type!r}, inputs={{{slot!r}: …}}): it has no such slot"
                )
            listed = list(value) if isinstance(value, (list, tuple)) else [value]
            if listed:
                arguments[argument] = listed if argument in self.lists else listed[0]
        for name, value in attrs.items():
            argument = self.attributes.get(name, name)
            if argument in known:
                # Of two attributes of one argument the other is empty: split has `num`, or `sections`.
                if argument not in arguments or value:
                    arguments[argument] = value
            elif name in _BESIDE and value in _UNCHANGING.get(name, (value,)) or name.startswith("op_"):
                continue
            else:
                raise Error(
                    "config",
                    f"append_op(type={type!r}, attrs={{{name!r}: {value!r}}}) is not supported",
                    "use the function of paddle that computes it",
                )
        if "return_softmax" in known:
            arguments["return_softmax"] = True
        made = self.function(**arguments)
        if self.outputs[0].endswith("*"):
            return [list(made)]
        return [[one] for one in made] if isinstance(made, (list, tuple)) else [[made]]


def _function(name: str) -> Callable[..., Any]:
    home, _, rest = name.rpartition(".")
    found: Callable[..., Any] = getattr({"": layers, "nn": functional, "t": tensor}[home], rest)
    return found


def _call(line: str) -> tuple[str, Call]:
    head, _, rest = line.partition(":")
    type, _, name = head.partition("@")
    taken, _, made = rest.partition("->")
    slots, _, attributes = taken.partition(";")
    pairs = dict(pair.split("=") for pair in slots.split())
    outputs = made.split()
    return type, Call(
        _function(name or type),
        {slot: argument.rstrip("*") for slot, argument in pairs.items()},
        frozenset(argument[:-1] for argument in pairs.values() if argument.endswith("*")),
        dict(pair.split("=") for pair in attributes.split()),
        [slot for slot in outputs if slot[0] != "["],
        frozenset(slot[1:-1] for slot in outputs if slot[0] == "["),
    )


CALLS: dict[str, Call] = dict(_call(line) for line in _LINES.strip().splitlines())
CALLS["depthwise_conv2d"] = CALLS["conv2d"]

"""Layers without parameters: each is its function with the arguments that it is made with."""

from __future__ import annotations

import inspect

from fleetrun._types import Any
from fleetrun.nn import functional
from fleetrun.nn._layer import Layer

# The layer, its function, and how many inputs it has; the other arguments are those of the layer.
_TABLE = """
CELU celu 1 | CosineEmbeddingLoss cosine_embedding_loss 3 | CosineSimilarity cosine_similarity 2
Dropout2D dropout2d 1 | ELU elu 1 | GELU gelu 1 | GLU glu 1 | Hardshrink hardshrink 1
Hardsigmoid hardsigmoid 1 | Hardswish hardswish 1 | Hardtanh hardtanh 1
HingeEmbeddingLoss hinge_embedding_loss 2 | KLDivLoss kl_div 2 | L1Loss l1_loss 2
LogSigmoid log_sigmoid 1 | LogSoftmax log_softmax 1 | MarginRankingLoss margin_ranking_loss 3
Maxout maxout 1 | Mish mish 1 | MultiLabelSoftMarginLoss multi_label_soft_margin_loss 2 | NLLLoss nll_loss 2
PairwiseDistance pairwise_distance 2 | PixelShuffle pixel_shuffle 1 | PoissonNLLLoss poisson_nll_loss 2
ChannelShuffle channel_shuffle 1 | ReLU6 relu6 1 | SELU selu 1 | Silu silu 1
SmoothL1Loss smooth_l1_loss 2 | SoftMarginLoss soft_margin_loss 2 | Softplus softplus 1
Softshrink softshrink 1 | Softsign softsign 1 | Swish swish 1 | Tanhshrink tanhshrink 1
ThresholdedReLU thresholded_relu 1 | TripletMarginLoss triplet_margin_loss 3
TripletMarginWithDistanceLoss triplet_margin_with_distance_loss 3 | ZeroPad2D zeropad2d 1
AlphaDropout alpha_dropout 1 | AvgPool3D avg_pool3d 1 | Dropout3D dropout3d 1
GaussianNLLLoss gaussian_nll_loss 3 | LocalResponseNorm local_response_norm 1 | MaxPool3D max_pool3d 1
MultiMarginLoss multi_margin_loss 2 | PixelUnshuffle pixel_unshuffle 1 | RReLU rrelu 1 | Upsample upsample 1
MaxUnPool1D max_unpool1d 2 | MaxUnPool2D max_unpool2d 2 | MaxUnPool3D max_unpool3d 2
Pad1D pad 1 NCL | Pad2D pad 1 NCHW | Pad3D pad 1 NCDHW
"""
# Arguments that Paddle's layer calls otherwise than its function, or leaves to train() and eval().
_RENAMED = {"pad": "padding"}
_BY_MODE = ("training",)


def _made(name: str, function: str, inputs: int, data_format: str | None) -> type[Layer]:
    signature = inspect.signature(getattr(functional, function))
    order = list(signature.parameters.values())[inputs:]
    if name in ("KLDivLoss", "L1Loss", "SmoothL1Loss", "NLLLoss"):
        order = [one for one in order if one.name != "name"]
    known = {_RENAMED.get(one.name, one.name): one.name for one in order if one.name not in _BY_MODE}
    by_mode = [one.name for one in order if one.name in _BY_MODE]

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        Layer.__init__(self)
        if len(args) > len(known):
            raise TypeError(f"{name}() takes {len(known)} arguments, and {len(args)} are given")
        given = {**dict(zip(known, args)), **kwargs}
        for key in given:
            if key not in known:
                raise TypeError(f"{name}() got an unexpected keyword argument {key!r}")
        made = {known[key]: value for key, value in given.items()}
        if data_format is not None:
            made.setdefault("data_format", data_format)
            axes = len(data_format) - 2
            made["pad"] = [made["pad"]] * (2 * axes) if isinstance(made["pad"], int) else made["pad"]
        self._arguments = made

    own = [one.replace(name=_RENAMED.get(one.name, one.name)) for one in order if one.name not in _BY_MODE]
    __init__.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *own]
    )

    def forward(self: Any, *variables: Any) -> Any:
        modes = dict.fromkeys(by_mode, self.training)
        return getattr(functional, function)(*variables, **self._arguments, **modes)

    text = f"functional.{function} with these arguments."
    return type(name, (Layer,), {"__doc__": text, "__init__": __init__, "forward": forward})


LAYERS = {
    parts[0]: (parts[1], int(parts[2]), parts[3] if len(parts) > 3 else None)
    for parts in (one.split() for one in _TABLE.strip().replace("\n", "|").split("|"))
}


def __getattr__(name: str) -> Any:
    if name not in LAYERS:
        raise AttributeError(name)
    made = globals()[name] = _made(name, *LAYERS[name])
    return made

"""Attention and the encoder made of it. Source: Vaswani et al., Attention is all you need, 2017."""

from fleetrun import tensor
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun._types import Any, ParamLike, Variable
from fleetrun.nn import functional
from fleetrun.nn._layer import Layer
from fleetrun.nn.containers import LayerList
from fleetrun.nn.layers import Dropout, Linear
from fleetrun.nn.norms import LayerNorm

__all__ = ["MultiHeadAttention", "TransformerEncoder", "TransformerEncoderLayer"]


def _mask_of(mask):
    """What is added to the products: bool and int masks say True or 1 where attention may look."""
    if mask is None or mask.dtype.name.startswith("float"):
        return mask
    return tensor.scale(tensor.cast(mask, "float32"), 1e9, -1e9)


class MultiHeadAttention(Layer):
    """softmax(q kᵀ / sqrt(head width)) v in num_heads parts of the width, between projections q_proj, k_proj,
    v_proj and out_proj.

    Shape: query[batch, length, embed_dim], key[batch, others, kdim], value[batch, others, vdim]; attn_mask is
    added to the products [batch, num_heads, length, others]. need_weights: the softmax is returned too.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        kdim: int | None = None,
        vdim: int | None = None,
        need_weights: bool = False,
        weight_attr: ParamLike = None,
        bias_attr: ParamLike = None,
    ) -> None:
        super().__init__()
        if num_heads <= 0 or embed_dim % num_heads:
            raise Error(
                "config",
                f"paddle.nn.MultiHeadAttention(embed_dim={embed_dim}, num_heads={num_heads}): "
                "the width does not divide into the heads",
            )
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.need_weights = dropout, need_weights
        self.q_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)
        self.k_proj = Linear(kdim or embed_dim, embed_dim, weight_attr, bias_attr)
        self.v_proj = Linear(vdim or embed_dim, embed_dim, weight_attr, bias_attr)
        self.out_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)

    def _heads(self, x):
        """[batch, length, width] -> [batch, heads, length, head width]."""
        return tensor.transpose(tensor.reshape(x, [0, 0, self.num_heads, self.head_dim]), [0, 2, 1, 3])

    def forward(
        self,
        query: Variable,
        key: Variable | None = None,
        value: Variable | None = None,
        attn_mask: Variable | None = None,
        cache: Any = None,
    ) -> Any:
        refuse("paddle.nn.MultiHeadAttention", cache=(cache, None))
        key = query if key is None else key
        value = query if value is None else value
        q, k, v = (
            self._heads(project(x))
            for project, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        product = tensor.matmul(tensor.scale(q, self.head_dim**-0.5), k, transpose_y=True)
        if attn_mask is not None:
            product = tensor.add(product, _mask_of(attn_mask))
        weights = functional.softmax(product)
        if self.dropout:
            weights = functional.dropout(weights, self.dropout, training=self.training)
        joined = tensor.reshape(
            tensor.transpose(tensor.matmul(weights, v), [0, 2, 1, 3]), [0, 0, self.embed_dim]
        )
        out = self.out_proj(joined)
        return (out, weights) if self.need_weights else out


def _pair(attr):
    """An attribute for attention and one for the two layers behind it."""
    if not isinstance(attr, (list, tuple)):
        return attr, attr
    return (attr[0], attr[0]) if len(attr) == 1 else tuple(attr)


class TransformerEncoderLayer(Layer):
    """Attention of a sequence to itself, then two linear layers, each added to what came in and normalised.

    Shape: src[batch, length, d_model]. dropout behind both parts, attn_dropout on the attention's weights,
    act_dropout behind the activation; both default to dropout. normalize_before: before each part instead of
    behind it.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: ParamLike = None,
        bias_attr: ParamLike = None,
    ) -> None:
        super().__init__()
        self._config = {
            "d_model": d_model,
            "nhead": nhead,
            "dim_feedforward": dim_feedforward,
            "dropout": dropout,
            "activation": activation,
            "attn_dropout": attn_dropout,
            "act_dropout": act_dropout,
            "normalize_before": normalize_before,
            "weight_attr": weight_attr,
            "bias_attr": bias_attr,
        }
        attn_dropout = dropout if attn_dropout is None else attn_dropout
        act_dropout = dropout if act_dropout is None else act_dropout
        self.normalize_before = normalize_before
        weights, biases = _pair(weight_attr), _pair(bias_attr)
        self.self_attn = MultiHeadAttention(
            d_model, nhead, dropout=attn_dropout, weight_attr=weights[0], bias_attr=biases[0]
        )
        self.linear1 = Linear(d_model, dim_feedforward, weights[1], bias_attr=biases[1])
        self.dropout = Dropout(act_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, weights[1], bias_attr=biases[1])
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = getattr(functional, activation)

    def forward(self, src: Variable, src_mask: Variable | None = None, cache: Any = None) -> Variable:
        refuse("paddle.nn.TransformerEncoderLayer", cache=(cache, None))
        before = self.norm1(src) if self.normalize_before else src
        src = tensor.add(src, self.dropout1(self.self_attn(before, before, before, src_mask)))
        src = src if self.normalize_before else self.norm1(src)
        before = self.norm2(src) if self.normalize_before else src
        inner = self.dropout(self.activation(self.linear1(before)))
        src = tensor.add(src, self.dropout2(self.linear2(inner)))
        return src if self.normalize_before else self.norm2(src)


class TransformerEncoder(Layer):
    """num_layers layers like encoder_layer, each with its own parameters, and `norm` behind them."""

    def __init__(
        self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Layer | None = None
    ) -> None:
        super().__init__()
        config: dict[str, Any] = encoder_layer._config
        more = [type(encoder_layer)(**config) for _ in range(num_layers - 1)]
        self.layers = LayerList([encoder_layer, *more])
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, src: Variable, src_mask: Variable | None = None, cache: Any = None) -> Variable:
        refuse("paddle.nn.TransformerEncoder", cache=(cache, None))
        for layer in self.layers:
            src = layer(src, src_mask)
        return src if self.norm is None else self.norm(src)

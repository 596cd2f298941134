"""The transformer's decoder, and encoder and decoder together. Source: Vaswani et al., Attention is all you
need, 2017."""

from fleetrun import tensor
from fleetrun._arguments import refuse
from fleetrun._types import Any, ParamLike, Variable
from fleetrun.nn import functional
from fleetrun.nn._layer import Layer
from fleetrun.nn.containers import LayerList
from fleetrun.nn.layers import Dropout, Linear
from fleetrun.nn.norms import LayerNorm
from fleetrun.nn.transformer import MultiHeadAttention, TransformerEncoder, TransformerEncoderLayer

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer"]


def _three(attr):
    """An attribute for attention, one for attention to the encoder, and one for the two layers behind it."""
    if not isinstance(attr, (list, tuple)):
        return [attr] * 3
    known = list(attr)
    return {1: known * 3, 2: [known[0], *known]}.get(len(known), known)


class TransformerDecoderLayer(Layer):
    """Attention of a sequence to itself, then to what an encoder gave, then two linear layers, each added to
    what came in and normalised; arguments are those of TransformerEncoderLayer.

    Shape: tgt[batch, length, d_model], memory[batch, others, d_model].
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
        self.normalize_before = normalize_before
        weights, biases = _three(weight_attr), _three(bias_attr)
        self.self_attn, self.cross_attn = (
            MultiHeadAttention(d_model, nhead, attn_dropout, weight_attr=weights[i], bias_attr=biases[i])
            for i in range(2)
        )
        self.linear1 = Linear(d_model, dim_feedforward, weights[2], bias_attr=biases[2])
        self.dropout = Dropout(dropout if act_dropout is None else act_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, weights[2], bias_attr=biases[2])
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))
        self.dropout1, self.dropout2, self.dropout3 = (Dropout(dropout) for _ in range(3))
        self.activation = getattr(functional, activation)

    def _inner(self, x: Variable) -> Variable:
        made: Variable = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return made

    def forward(
        self,
        tgt: Variable,
        memory: Variable,
        tgt_mask: Variable | None = None,
        memory_mask: Variable | None = None,
        cache: Any = None,
    ) -> Variable:
        refuse("paddle.nn.TransformerDecoderLayer", cache=(cache, None))
        parts: Any = (
            (self.norm1, self.dropout1, lambda x: self.self_attn(x, x, x, tgt_mask)),
            (self.norm2, self.dropout2, lambda x: self.cross_attn(x, memory, memory, memory_mask)),
            (self.norm3, self.dropout3, self._inner),
        )
        for norm, dropout, part in parts:
            made = part(norm(tgt) if self.normalize_before else tgt)
            tgt = tensor.add(tgt, dropout(made))
            tgt = tgt if self.normalize_before else norm(tgt)
        return tgt


class TransformerDecoder(Layer):
    """num_layers layers like decoder_layer, each with its own parameters, and `norm` behind them."""

    def __init__(
        self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Layer | None = None
    ) -> None:
        super().__init__()
        config: dict[str, Any] = decoder_layer._config
        more = [type(decoder_layer)(**config) for _ in range(num_layers - 1)]
        self.layers = LayerList([decoder_layer, *more])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Variable,
        memory: Variable,
        tgt_mask: Variable | None = None,
        memory_mask: Variable | None = None,
        cache: Any = None,
    ) -> Variable:
        refuse("paddle.nn.TransformerDecoder", cache=(cache, None))
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Layer):
    """An encoder and a decoder, each normalised behind its layers; custom_encoder, custom_decoder: others
    instead.

    Shape: src[batch, length, d_model], tgt[batch, others, d_model] -> that of tgt.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str = "relu",
        attn_dropout: float | None = None,
        act_dropout: float | None = None,
        normalize_before: bool = False,
        weight_attr: ParamLike = None,
        bias_attr: ParamLike = None,
        custom_encoder: Layer | None = None,
        custom_decoder: Layer | None = None,
    ) -> None:
        super().__init__()
        self.d_model, self.nhead = d_model, nhead
        sizes = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            attn_dropout,
            act_dropout,
            normalize_before,
        )
        encoder_attrs = [attr and [attr[0], attr[-1]] if isinstance(attr, (list, tuple)) else attr
                         for attr in (weight_attr, bias_attr)]  # fmt: skip
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*sizes, *encoder_attrs), num_encoder_layers, LayerNorm(d_model)
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*sizes, weight_attr, bias_attr), num_decoder_layers, LayerNorm(d_model)
        )

    def forward(
        self,
        src: Variable,
        tgt: Variable,
        src_mask: Variable | None = None,
        tgt_mask: Variable | None = None,
        memory_mask: Variable | None = None,
    ) -> Variable:
        memory = self.encoder(src, src_mask)
        made: Variable = self.decoder(tgt, memory, tgt_mask, memory_mask)
        return made

    def generate_square_subsequent_mask(self, length: int) -> Variable:
        """What keeps a place from looking at those behind it: 0 up to it, -inf behind. Shape: [length,
        length]."""
        rows = [[0.0 if k <= i else float("-inf") for k in range(length)] for i in range(length)]
        return tensor.to_tensor(rows, "float32")

"""paddle.nn: layers, their functions and initial values."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "functional": "nn.functional",
        "initializer": "nn.initializer",
        "Layer": "nn._layer:Layer",
        "Parameter": "framework:Parameter",
        **_lazy.names("nn.clip", "ClipGradByValue ClipGradByNorm ClipGradByGlobalNorm"),
        **_lazy.names("nn.containers", "Sequential LayerList ParameterList LayerDict Identity"),
        **_lazy.names(
            "nn._made",
            "AlphaDropout AvgPool3D Dropout3D GaussianNLLLoss LocalResponseNorm MaxPool3D MaxUnPool1D "
            "MaxUnPool2D MaxUnPool3D MultiMarginLoss "
            "PixelUnshuffle RReLU Upsample "
            "CELU ChannelShuffle CosineEmbeddingLoss CosineSimilarity Dropout2D ELU GELU GLU "
            "Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss KLDivLoss L1Loss LogSigmoid "
            "LogSoftmax MarginRankingLoss Maxout Mish MultiLabelSoftMarginLoss NLLLoss Pad1D Pad2D "
            "Pad3D PairwiseDistance PixelShuffle PoissonNLLLoss ReLU6 SELU Silu SmoothL1Loss "
            "SoftMarginLoss Softplus Softshrink Softsign Swish Tanhshrink ThresholdedReLU "
            "TripletMarginLoss TripletMarginWithDistanceLoss ZeroPad2D ",
        ),
        **_lazy.names("nn.transposed", "Conv1DTranspose Conv2DTranspose Conv3D Conv3DTranspose HSigmoidLoss"),
        **_lazy.names("fluid._decoding", "BeamSearchDecoder dynamic_decode"),
        **_lazy.names("nn.windows", "Conv1D Conv2D MaxPool1D MaxPool2D AvgPool1D AvgPool2D"),
        **_lazy.names(
            "nn.norms",
            "LayerNorm BatchNorm BatchNorm1D BatchNorm2D BatchNorm3D GroupNorm InstanceNorm1D InstanceNorm2D "
            "InstanceNorm3D PReLU",
        ),
        "SpectralNorm": "nn._spectral:SpectralNorm",
        **_lazy.names(
            "nn.adaptive",
            "AdaptiveAvgPool1D AdaptiveAvgPool2D AdaptiveAvgPool3D "
            "AdaptiveMaxPool1D AdaptiveMaxPool2D AdaptiveMaxPool3D",
        ),
        **_lazy.names("nn.recurrent", "SimpleRNNCell GRUCell LSTMCell RNN BiRNN SimpleRNN GRU LSTM"),
        **_lazy.names("nn.decoder", "Transformer TransformerDecoder TransformerDecoderLayer"),
        **_lazy.names(
            "nn.more_layers",
            "Bilinear CTCLoss Fold Softmax2D Unflatten Unfold UpsamplingBilinear2D UpsamplingNearest2D",
        ),
        **_lazy.names("nn.transformer", "MultiHeadAttention TransformerEncoderLayer TransformerEncoder"),
        **_lazy.names(
            "nn.layers",
            "Linear Embedding Dropout Flatten ReLU Sigmoid Tanh Softmax LeakyReLU "
            "CrossEntropyLoss BCELoss BCEWithLogitsLoss MSELoss",
        ),
    },
)

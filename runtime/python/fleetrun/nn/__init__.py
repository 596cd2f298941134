"""paddle.nn: layers, their functions and initial values."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(__name__, "paddle.nn", {
    "functional": "nn.functional",
    "initializer": "nn.initializer",
    "Layer": "nn.layer:Layer",
    "Parameter": "framework:Parameter",
    **_lazy.names("nn.containers", "Sequential LayerList"),
    **_lazy.names("nn.layers", "Linear Embedding Dropout Flatten ReLU Sigmoid Tanh Softmax LeakyReLU "
                  "CrossEntropyLoss BCELoss BCEWithLogitsLoss MSELoss"),
})

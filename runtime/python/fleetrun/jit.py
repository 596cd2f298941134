"""paddle.jit: what saves and traces dynamic models in Paddle. There are none here, so each call says what to use instead."""

from fleetrun import _lazy
from fleetrun._error import Error

_PROGRAM = "build the model with paddle.static.data: it is a program already"


def save(layer, path, input_spec=None, **configs):
    """Refused. Throws: Error(config)."""
    raise Error("config", "paddle.jit.save: fleetrun has no dynamic models", "save a program with paddle.static.save_inference_model")


def load(path, **configs):
    """Refused. Throws: Error(config)."""
    raise Error("config", "paddle.jit.load: fleetrun has no dynamic models", "load a program with paddle.static.load_inference_model")


def to_static(function=None, *args, **kwargs):
    """Refused. Throws: Error(config)."""
    raise Error("config", "paddle.jit.to_static: fleetrun has no dynamic models", _PROGRAM)


__getattr__, __dir__ = _lazy.attach(__name__, "paddle.jit", {name: f"jit:{name}" for name in ("save", "load", "to_static")})

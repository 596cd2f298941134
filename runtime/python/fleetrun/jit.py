"""paddle.jit: what saves and traces dynamic models in Paddle. There are none here, so each call says what to
use instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleetrun import _lazy
from fleetrun._error import Error

if TYPE_CHECKING:
    import os

__all__ = ["load", "save", "to_static"]

_PROGRAM = "build the model with paddle.static.data: it is a program already"


def save(layer: Any, path: str | os.PathLike[str], input_spec: Any = None, **configs: Any) -> None:
    """Refused. Throws: Error(config)."""
    raise Error(
        "config",
        "paddle.jit.save: fleetrun has no dynamic models",
        "save a program with paddle.static.save_inference_model",
    )


def load(path: str | os.PathLike[str], **configs: Any) -> None:
    """Refused. Throws: Error(config)."""
    raise Error(
        "config",
        "paddle.jit.load: fleetrun has no dynamic models",
        "load a program with paddle.static.load_inference_model",
    )


def to_static(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Refused. Throws: Error(config)."""
    raise Error("config", "paddle.jit.to_static: fleetrun has no dynamic models", _PROGRAM)


__getattr__, __dir__ = _lazy.attach(__name__)

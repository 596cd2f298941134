"""paddle.fluid.layers.rnn: in Paddle 1.x a module and a function, so that the module is called here."""

from __future__ import annotations

import sys
import types

from fleetrun._types import Any
from fleetrun.fluid import _cells, layers

__all__: list[str] = []


class _Called(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _cells.rnn(*args, **kwargs)


sys.modules[__name__].__class__ = _Called


def __getattr__(name: str) -> Any:
    return getattr(layers, name)

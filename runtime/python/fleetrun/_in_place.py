"""paddle.NAME_: what paddle.NAME gives. In a program nothing changes in place, in Paddle as here, which is
said once for each name."""

from __future__ import annotations

import functools

from fleetrun import tensor
from fleetrun._arguments import warn_once
from fleetrun._types import Any, Callable


def of(module: Any, name: str) -> Callable[..., Any]:
    """module.NAME, which says under `name` (NAME_) that it returns a new variable."""
    function = getattr(module, name[:-1])

    @functools.wraps(function)
    def out_of_place(*args: Any, **kwargs: Any) -> Any:
        warn_once(name, f"{name}() in a program is {name[:-1]}(): it gives a new variable, and changes none")
        return function(*args, **kwargs)

    out_of_place.__name__ = out_of_place.__qualname__ = name
    return out_of_place


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return of(tensor, name)

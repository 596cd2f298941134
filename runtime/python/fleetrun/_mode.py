"""Static or dynamic: fleetrun builds programs only, so the switches have one position each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleetrun._error import Error

if TYPE_CHECKING:
    from fleetrun._dtypes import DTypeLike


def enable_static(place: Any = None) -> None:
    """Accepted: programs are the only mode that fleetrun has."""


def disable_static(place: Any = None) -> None:
    """Refused, because there is nothing to switch to. Throws: Error(config)."""
    raise Error(
        "config",
        "paddle.disable_static(): fleetrun has no dynamic mode",
        "build the model with paddle.static.data and run it with paddle.static.Executor",
    )


def in_dynamic_mode() -> bool:
    """Always False."""
    return False


def get_default_dtype() -> str:
    """The type of parameters and of everything that has a gradient: "float32"."""
    return "float32"


def set_default_dtype(d: DTypeLike) -> None:
    """Accepts float32 only. Throws: Error(config)."""
    from fleetrun import _dtypes as dtypes

    if dtypes.name_of(d) != "float32":
        raise Error("config", f"paddle.set_default_dtype({d!r}): parameters are float32", "leave it out")

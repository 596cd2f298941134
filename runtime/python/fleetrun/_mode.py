"""Static or dynamic: fleetrun builds programs only, so the switches have one position each."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fleetrun._error import Error

if TYPE_CHECKING:
    from fleetrun._dtypes import DTypeLike


# Whether the script said that it builds programs; one that did not is perhaps written for dynamic mode.
asked_for_static = False


def is_of_1x() -> bool:
    """Whether the script uses paddle.fluid.layers: no Paddle that has it knows variables without axes, nor
    widens float32 to float64."""
    return "fleetrun.fluid.layers" in sys.modules


def dynamic_hint() -> str:
    """What a script of dynamic mode is told."""
    from fleetrun._decisions import table

    return table()[0]["dynamic"]


# Whether the script asked for dynamic mode since: a script may ask for it behind all of its programs.
_dynamic = False


def enable_static(place: Any = None) -> None:
    """Programs are the only mode that fleetrun has."""
    global asked_for_static, _dynamic
    asked_for_static, _dynamic = True, False


def disable_static(place: Any = None) -> None:
    """Accepted, and what is called next that makes a variable is refused, until enable_static()."""
    global _dynamic
    _dynamic = True


def enable_dygraph(place: Any = None) -> None:
    """disable_static()."""
    disable_static(place)


disable_dygraph = enable_static


def forget() -> None:
    """Is as before the script's first line."""
    global asked_for_static, _dynamic
    asked_for_static = _dynamic = False


@contextlib.contextmanager
def dygraph_guard(tracer: Any) -> Iterator[None]:
    """Within `with`, as after enable_static() for None, else as after disable_static()."""
    global _dynamic
    before, _dynamic = _dynamic, tracer is not None
    try:
        yield
    finally:
        _dynamic = before


def expect_static() -> None:
    """Throws: Error(config) in dynamic mode."""
    if _dynamic:
        raise Error("config", "paddle.disable_static(): fleetrun has no dynamic mode", dynamic_hint())


class no_grad(contextlib.ContextDecorator):  # noqa: N801, Paddle's name
    """Within `with`, or in a function decorated by it: accepted, without effect on programs, as in Paddle.
    stop_gradient of a variable says where no gradient flows."""

    def __init__(self, func: Any = None) -> None:
        self._function = func

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args) if self._function is None else self._function(*args, **kwargs)

    def __enter__(self) -> no_grad:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing changes."""


def set_printoptions(**options: Any) -> None:
    """Accepted: values are NumPy's, which numpy.set_printoptions() prints."""


def disable_signal_handler() -> None:
    """Accepted: fleetrun handles no signals in the script's place."""


def is_grad_enabled() -> bool:
    """True."""
    return True


def set_flags(flags: dict[str, Any]) -> None:
    """Puts FLAGS_… into the environment; those that have a meaning here are read from there.

    Throws: TypeError for what is no dict, ValueError for a name that Paddle refuses, too.
    """
    if not isinstance(flags, dict):
        raise TypeError(f"set_flags({flags!r}): it takes a dict")
    for name in flags:
        _expect_public("set_flags", name)
    for name, value in flags.items():
        os.environ[name] = str(value)
        _flags[name] = (os.environ[name], value)


# What Paddle keeps to itself, behind "FLAGS_".
_PRIVATE = ("free_idle_chunk", "free_when_no_cache_hit", "print_allocator_trace_info")


def _expect_public(function, name):
    if not str(name).startswith("FLAGS_") or name.removeprefix("FLAGS_") in _PRIVATE:
        raise ValueError(f"{function}: {name!r} is not a flag that a script may read or set")


# What set_flags() was given, with the text that stands for it in the environment.
_flags: dict[str, tuple[str, Any]] = {}


def get_flags(flags: str | list[str]) -> dict[str, Any]:
    """{name: value} of FLAGS_…: what set_flags() was given, else the text in the environment, None for one
    that is not set. Throws: TypeError, ValueError as set_flags()."""
    if not isinstance(flags, (str, list, tuple)):
        raise TypeError(f"get_flags({flags!r}): it takes a name or a list of names")

    def value(name):
        _expect_public("get_flags", name)
        text, given = os.environ.get(name), _flags.get(name)
        return given[1] if given is not None and given[0] == text else text

    return {name: value(name) for name in ([flags] if isinstance(flags, str) else flags)}


def in_dynamic_mode() -> bool:
    """Whether the script asked for it, by disable_static()."""
    return _dynamic


def get_default_dtype() -> str:
    """The type of parameters and of everything that has a gradient: "float32"."""
    return "float32"


def set_default_dtype(d: DTypeLike) -> None:
    """Accepts float32 only. Throws: Error(config)."""
    from fleetrun import _dtypes as dtypes

    if dtypes.name_of(d) != "float32":
        raise Error("config", f"paddle.set_default_dtype({d!r}): parameters are float32", "leave it out")

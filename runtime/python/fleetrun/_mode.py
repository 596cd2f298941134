"""Static or dynamic: fleetrun builds programs only, so the switches have one position each."""

from fleetrun._error import Error


def enable_static(place=None):
    """Accepted: programs are the only mode that fleetrun has."""


def disable_static(place=None):
    """Refused, because there is nothing to switch to. Throws: Error(config)."""
    raise Error("config", "paddle.disable_static(): fleetrun has no dynamic mode",
                "build the model with paddle.static.data and run it with paddle.static.Executor")


def in_dynamic_mode():
    """Always False."""
    return False


def get_default_dtype():
    """The type of parameters and of everything that has a gradient: "float32"."""
    return "float32"


def set_default_dtype(d):
    """Accepts float32 only. Throws: Error(config)."""
    from fleetrun import _dtypes as dtypes

    if dtypes.name_of(d) != "float32":
        raise Error("config", f"paddle.set_default_dtype({d!r}): parameters are float32", "leave it out")

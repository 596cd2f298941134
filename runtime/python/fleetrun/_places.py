"""Where a program runs. Always the CPU: other places are accepted, and say so once."""

from fleetrun._arguments import warn_once
from fleetrun._error import Error


class CPUPlace:
    """The CPU."""

    def __repr__(self) -> str:
        return "Place(cpu)"


class CUDAPlace(CPUPlace):
    """Accepted so that scripts run unchanged; the program runs on the CPU. Warns once per process."""

    def __init__(self, id: int = 0) -> None:
        self.id = id
        warn_once("place", f"paddle.{type(self).__name__}({id}): fleetrun's engine runs on the CPU")


class CUDAPinnedPlace(CPUPlace):
    """Host memory like any other here."""


def check(place: CPUPlace | str | None) -> CPUPlace:
    """Returns `place`, or the CPU for None. Throws: Error(config) for anything that is not a place."""
    if place is None:
        return CPUPlace()
    if isinstance(place, str):
        set_device(place)
        return CPUPlace()
    if not isinstance(place, CPUPlace):
        raise Error("config", f"{place!r} is not a place", "use paddle.CPUPlace()")
    return place


def is_compiled_with_cuda() -> bool:
    """False: the engine has no CUDA operators."""
    return False


def is_compiled_with_xpu() -> bool:
    """False."""
    return False


def is_compiled_with_rocm() -> bool:
    """False."""
    return False


def is_compiled_with_custom_device(device_type: str) -> bool:
    """False for every device type."""
    return False


def set_device(device: str) -> CPUPlace:
    """Takes "cpu"; "gpu" and "gpu:N" with the warning of CUDAPlace. Throws: Error(config) for others."""
    kind = str(device).partition(":")[0]
    if kind == "gpu":
        warn_once("place", f"paddle.set_device({device!r}): fleetrun's engine runs on the CPU")
    elif kind != "cpu":
        raise Error("config", f"paddle.set_device({device!r}): there is no such device", 'use "cpu"')
    return CPUPlace()


def get_device() -> str:
    """ "cpu"."""
    return "cpu"

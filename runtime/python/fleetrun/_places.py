"""Where a program runs. Always the CPU: other places are accepted, and say so once."""

import contextlib
import os
from collections.abc import Iterator

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


class XPUPlace(CUDAPlace):
    """Accepted as CUDAPlace is."""


class NPUPlace(CUDAPlace):
    """Accepted as CUDAPlace is."""


class CustomPlace(CUDAPlace):
    """Accepted as CUDAPlace is."""

    def __init__(self, device_type: str = "", id: int = 0) -> None:
        super().__init__(id)


class CUDAPinnedPlace(CPUPlace):
    """Host memory like any other here."""


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """`device_count` times the CPU; CPU_NUM times when it is not given, 1 when that is not set."""
    return [CPUPlace() for _ in range(cpu_num() if device_count is None else device_count)]


def get_places(device_count: int | None = None, device_type: str | None = None) -> list[CPUPlace]:
    """fluid.layers.get_places of Paddle 1.x: cpu_places(); 0 is for not given."""
    return cpu_places(device_count or None)


def cuda_places(device_ids: list[int] | None = None) -> list[CUDAPlace]:
    """A place for each of device_ids, which the CPU takes; none when they are not given."""
    return [CUDAPlace(one) for one in device_ids or ()]


def cuda_pinned_places(device_count: int | None = None) -> list[CUDAPinnedPlace]:
    """Host memory, as often as cpu_places() has the CPU."""
    return [CUDAPinnedPlace() for _ in cpu_places(device_count)]


def xpu_places(device_ids: list[int] | None = None) -> list[XPUPlace]:
    """cuda_places() of XPUPlace."""
    return [XPUPlace(one) for one in device_ids or ()]


def cpu_num() -> int:
    """CPU_NUM, 1 when it is not set. Throws: Error(config) when it is not a number of at least 1."""
    text = os.environ.get("CPU_NUM") or "1"
    if not text.isdigit() or int(text) < 1:
        raise Error("config", f'CPU_NUM="{text}" is not a number of replicas', "set it to 1 or more")
    return int(text)


@contextlib.contextmanager
def device_guard(device: str | None = None) -> Iterator[None]:
    """Within `with`: operators are built for this device; all run on the CPU, and another one than "cpu" is
    said once."""
    kind = (device or "cpu").partition(":")[0]
    if kind not in ("cpu", "gpu", "xpu", "npu"):
        raise Error("config", f'paddle.static.device_guard("{device}"): there is no such device')
    if kind != "cpu":
        warn_once("place", f'paddle.static.device_guard("{device}"): fleetrun\'s engine runs on the CPU')
    yield


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Throws: Error(config) when 2.6.2, whose names these are, is not within the versions."""

    def number(text: str) -> list[int]:
        return [int(part) for part in text.split(".")[:3] if part.isdigit()]

    if number(min_version) > [2, 6, 2] or max_version and number(max_version) < [2, 6]:
        raise Error(
            "config",
            f"paddle.utils.require_version({min_version!r}, {max_version!r}): these are the names of 2.6.2",
        )


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


def is_compiled_with_npu() -> bool:
    """False."""
    return False


def is_compiled_with_ipu() -> bool:
    """False."""
    return False


def is_compiled_with_cinn() -> bool:
    """False."""
    return False


def is_compiled_with_distribute() -> bool:
    """True: trainers and servers."""
    return True


def get_all_device_type() -> list[str]:
    """["cpu"]."""
    return ["cpu"]


def get_all_custom_device_type() -> list[str]:
    """None: []."""
    return []


def get_cudnn_version() -> None:
    """None: there is no cuDNN."""


def get_cuda_rng_state() -> list[object]:
    """[]: there is no GPU whose random numbers have a state."""
    return []


def set_cuda_rng_state(state_list: list[object]) -> None:
    """Takes what get_cuda_rng_state() gave. Throws: Error(config) for the states of GPUs."""
    if state_list:
        raise Error("config", f"paddle.set_cuda_rng_state of {len(state_list)} GPUs: the engine has none")


def synchronize(device: object = None) -> None:
    """Nothing: a run is done when it returns."""


def is_compiled_with_custom_device(device_type: str) -> bool:
    """False for every device type."""
    return False


def set_device(device: str) -> CPUPlace:
    """Takes "cpu"; "gpu" and "gpu:N" with the warning of CUDAPlace. Throws: Error(config) for others."""
    kind = str(device).lower().partition(":")[0]
    if kind == "gpu":
        warn_once("place", f"paddle.set_device({device!r}): fleetrun's engine runs on the CPU")
    elif kind != "cpu":
        raise Error("config", f"paddle.set_device({device!r}): there is no such device", 'use "cpu"')
    return CPUPlace()


def get_device() -> str:
    """ "cpu"."""
    return "cpu"

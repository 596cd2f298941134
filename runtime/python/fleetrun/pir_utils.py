"""paddle.pir_utils: Paddle 2.6 builds programs in two ways, and runs its tests in both; here is one."""

import contextlib

from fleetrun._types import Any, Callable

__all__ = ["IrGuard", "test_with_pir_api"]


class IrGuard(contextlib.nullcontext[None]):
    """`with IrGuard():` changes nothing."""


def test_with_pir_api(func: Callable[..., Any]) -> Callable[..., Any]:
    """func itself."""
    return func


test_with_pir_api.__test__ = False  # type: ignore[attr-defined]  # pytest takes it for a test

"""Layers of adaptive pools: their functions (_adaptive.py)."""

from __future__ import annotations

from fleetrun._types import Any, Sequence, Variable
from fleetrun.nn import _adaptive
from fleetrun.nn._layer import Layer

__all__ = [
    "AdaptiveAvgPool1D", "AdaptiveAvgPool2D", "AdaptiveAvgPool3D",
    "AdaptiveMaxPool1D", "AdaptiveMaxPool2D", "AdaptiveMaxPool3D",
]  # fmt: skip


class AdaptiveAvgPool1D(Layer):
    """functional.adaptive_avg_pool1d."""

    def __init__(self, output_size: int, name: str | None = None) -> None:
        super().__init__()
        self._size = output_size

    def forward(self, x: Variable) -> Variable:
        return _adaptive.adaptive_avg_pool1d(x, self._size)


class AdaptiveAvgPool2D(Layer):
    """functional.adaptive_avg_pool2d."""

    def __init__(
        self, output_size: int | Sequence[int | None], data_format: str = "NCHW", name: str | None = None
    ) -> None:
        super().__init__()
        self._size, self._format = output_size, data_format

    def forward(self, x: Variable) -> Variable:
        return _adaptive.adaptive_avg_pool2d(x, self._size, self._format)


class AdaptiveMaxPool1D(Layer):
    """functional.adaptive_max_pool1d."""

    def __init__(self, output_size: int, return_mask: bool = False, name: str | None = None) -> None:
        super().__init__()
        self._size, self._return_mask = output_size, return_mask

    def forward(self, x: Variable) -> Any:
        return _adaptive.adaptive_max_pool1d(x, self._size, self._return_mask)


class AdaptiveMaxPool2D(Layer):
    """functional.adaptive_max_pool2d."""

    def __init__(
        self, output_size: int | Sequence[int | None], return_mask: bool = False, name: str | None = None
    ) -> None:
        super().__init__()
        self._size, self._return_mask = output_size, return_mask

    def forward(self, x: Variable) -> Any:
        return _adaptive.adaptive_max_pool2d(x, self._size, self._return_mask)


class AdaptiveAvgPool3D(Layer):
    """functional.adaptive_avg_pool3d."""

    def __init__(
        self, output_size: int | Sequence[int | None], data_format: str = "NCDHW", name: str | None = None
    ) -> None:
        super().__init__()
        self._size, self._format = output_size, data_format

    def forward(self, x: Variable) -> Variable:
        return _adaptive.adaptive_avg_pool3d(x, self._size, self._format)


class AdaptiveMaxPool3D(Layer):
    """functional.adaptive_max_pool3d."""

    def __init__(
        self, output_size: int | Sequence[int | None], return_mask: bool = False, name: str | None = None
    ) -> None:
        super().__init__()
        self._size, self._return_mask = output_size, return_mask

    def forward(self, x: Variable) -> Variable:
        return _adaptive.adaptive_max_pool3d(x, self._size, self._return_mask)

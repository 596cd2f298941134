"""The values of a tensor one by one, under the names that Paddle's C++ object has for them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    from numpy.typing import ArrayLike


class Elements:
    """For what numpy.asarray() reads and set() replaces. Offsets count values in order, from 0."""

    if TYPE_CHECKING:

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray: ...

        def set(self, array: ArrayLike, place: Any = None) -> None: ...

        def shape(self) -> list[int]: ...

    def _get_float_element(self, offset: int) -> float:
        """The value at an offset. Throws: IndexError."""
        return float(self.__array__().reshape(-1)[offset])

    def _set_float_element(self, offset: int, value: float) -> None:
        """Replaces the value at an offset. Throws: IndexError."""
        array = self.__array__().copy()
        array.reshape(-1)[offset] = value
        self.set(array)

    _get_double_element, _set_double_element = _get_float_element, _set_float_element

    def _numel(self) -> int:
        """How many values there are."""
        return int(self.__array__().size)

    def _get_dims(self) -> list[int]:
        """Sizes; [0] of what nothing was put in."""
        return self.shape()

    def _set_dims(self, dims: list[int]) -> None:
        """Takes other sizes; with more or fewer values, zeros."""
        array = self.__array__()
        self.set(array.reshape(dims) if math.prod(dims) == array.size else self._zeros(dims, array.dtype))

    def _alloc_float(self, place: Any = None) -> None:
        """Becomes zeros of its sizes, float32."""
        self.set(self._zeros(self._get_dims(), "float32"))

    def _alloc_double(self, place: Any = None) -> None:
        """Becomes zeros of its sizes, float64."""
        self.set(self._zeros(self._get_dims(), "float64"))

    def _alloc_int(self, place: Any = None) -> None:
        """Becomes zeros of its sizes, int32."""
        self.set(self._zeros(self._get_dims(), "int32"))

    @staticmethod
    def _zeros(dims: list[int], dtype: Any) -> numpy.ndarray:
        import numpy

        return numpy.zeros(dims, dtype)

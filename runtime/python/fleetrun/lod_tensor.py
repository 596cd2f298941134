"""LoDTensor: an array of the values of all examples, one after the other, and which of them belong to which
example.

Source: Paddle 2.6.2's paddle.base.LoDTensor and create_lod_tensor. One level is what a variable with
lod_level=1 is fed; with two, the examples are sequences, and the outer level says how many belong together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from fleetrun._elements import Elements
from fleetrun._error import Error

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["create_lod_tensor", "create_random_int_lodtensor", "LoDTensor", "LoDTensorArray"]


class LoDTensor(Elements):
    """`array`: [values of all examples, …]; example r owns rows offsets[r] to offsets[r + 1], `lod_offsets`.
    Of more levels, `outer` has the lengths of those before, the outermost first."""

    def __init__(self, array: ArrayLike | None = None, lod_offsets: Sequence[int] | None = None) -> None:
        self.array = numpy.zeros(0, dtype="float32") if array is None else numpy.ascontiguousarray(array)
        self.lod_offsets = [] if lod_offsets is None else list(lod_offsets)
        self.outer: list[list[int]] = []

    def set(self, array: ArrayLike, place: Any = None) -> None:
        """Takes other values."""
        self.array = numpy.ascontiguousarray(array)

    def __getitem__(self, index: Any) -> Any:
        """The values at an index of the array."""
        return self.array[index]

    def _is_initialized(self) -> bool:
        """Whether it has been given values."""
        return bool(self.array.size)

    def shape(self) -> list[int]:
        """Sizes of the array."""
        return list(self.array.shape)

    def lod(self) -> list[list[int]]:
        """The offsets of each level, the outermost first, or [] for an array without examples of its own."""
        offsets = [_offsets(lengths) for lengths in self.outer]
        return [*offsets, list(self.lod_offsets)] if self.lod_offsets else []

    def recursive_sequence_lengths(self) -> list[list[int]]:
        """The lengths of each level, the last of which counts the values of each example, or []."""
        if not self.lod_offsets:
            return []
        return [*map(list, self.outer), numpy.diff(self.lod_offsets).tolist()]

    def set_recursive_sequence_lengths(self, recursive_sequence_lengths: Sequence[Sequence[int]]) -> None:
        """Takes the lengths of each level, the last of which counts the values of each example. Throws:
        Error(config) for numbers below 0."""
        levels = [[int(length) for length in level] for level in recursive_sequence_lengths]
        for level in levels:
            if any(length < 0 for length in level):
                what = f"a LoDTensor with an example of {min(level)} values"
                raise Error("config", what, "a length is 0 or more")
        self.lod_offsets = _offsets(levels[-1]) if levels else []
        self.outer = levels[:-1]

    def set_lod(self, lod: Sequence[Any]) -> None:
        """Takes the offsets of each level. Throws: Error(config)."""
        self.set_recursive_sequence_lengths([numpy.diff(level).tolist() for level in lod])

    def has_valid_recursive_sequence_lengths(self) -> bool:
        """Whether the offsets begin with 0, never fall, and end with the number of rows of the array, and
        each outer level counts the sequences of the next."""
        offsets, rows = self.lod_offsets, self.array.shape[0] if self.array.ndim else 0
        if not offsets:
            return True
        counts = [*map(len, self.outer[1:]), len(offsets) - 1]
        if any(sum(level) != count for level, count in zip(self.outer, counts)):
            return False
        return offsets[0] == 0 and offsets[-1] == rows and all(a <= b for a, b in zip(offsets, offsets[1:]))

    def __array__(self, dtype: Any = None, copy: Any = None) -> numpy.ndarray:
        return self.array if dtype is None else self.array.astype(dtype)

    def __repr__(self) -> str:
        return f"LoDTensor(lod={self.lod()}, array=\n{self.array!r})"


def _offsets(lengths: Sequence[int]) -> list[int]:
    return [0, *numpy.cumsum(lengths, dtype="int64").tolist()]


def create_lod_tensor(
    data: ArrayLike | LoDTensor, recursive_seq_lens: Sequence[Sequence[int]], place: Any = None
) -> LoDTensor:
    """A LoDTensor of `data`: an array, a LoDTensor, or a list of lists of ids (int64, one column).

    Throws: Error(config) where the lengths and the data disagree.
    """
    if isinstance(data, LoDTensor):
        data = data.array
    if isinstance(data, list):
        lengths = [len(one) for one in data]
        if list(recursive_seq_lens[-1]) != lengths:
            raise Error(
                "config",
                f"recursive_seq_lens says {list(recursive_seq_lens[-1])}, the lists of data have {lengths}",
                "give the length of each list",
            )
        data = numpy.array([value for one in data for value in one], dtype="int64").reshape(-1, 1)
    tensor = LoDTensor(numpy.asarray(data))
    tensor.set_recursive_sequence_lengths(recursive_seq_lens)
    if not tensor.has_valid_recursive_sequence_lengths():
        raise Error(
            "config",
            f"recursive_seq_lens adds up to {[sum(level) for level in recursive_seq_lens]}, data has "
            f"{len(tensor.array)} rows",
            "give the number of rows of each example, and in outer levels how many examples belong together",
        )
    return tensor


def create_random_int_lodtensor(
    recursive_seq_lens: Sequence[Sequence[int]], base_shape: Sequence[int], place: Any, low: int, high: int
) -> LoDTensor:
    """A LoDTensor of random whole numbers in [low, high]. Shape: [sum of the lengths, *base_shape] int64."""
    shape = [sum(recursive_seq_lens[-1]), *base_shape]
    return create_lod_tensor(numpy.random.randint(low, high + 1, shape), recursive_seq_lens, place)


class LoDTensorArray(list[LoDTensor]):
    """A list of LoDTensors."""

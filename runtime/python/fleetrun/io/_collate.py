"""Examples to batches: equal parts of the examples stacked into arrays, straight into the memory where the
batch will lie."""

import collections.abc
import numbers
import sys

import numpy

from fleetrun._error import Error

ALIGNMENT = 64


def default_collate_fn(batch):
    """One batch of a list of examples, as Paddle makes it: arrays and numbers are stacked to arrays, lists
    and tuples become lists, dicts dicts, of the parts' batches; texts a list. PyTorch tensors count as
    arrays.
    Throws: Error(data) for examples that differ in shape or number of parts, or have parts of another
    type."""
    return fill(gather(batch), numpy.empty)


def gather(batch):
    """The batch with a Column where there will be an array."""
    first = batch[0]
    if isinstance(first, numpy.ndarray):
        return Column(batch)
    if isinstance(first, (numbers.Number, numpy.generic)):
        return Column([numpy.array(batch)], stacked=True)
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, collections.abc.Mapping):
        return {key: gather([example[key] for example in batch]) for key in first}
    if isinstance(first, collections.abc.Sequence):
        sizes = sorted({len(example) for example in batch})
        if len(sizes) > 1:
            raise Error(
                "data",
                f"examples of one batch have {sizes[0]} and {sizes[-1]} parts",
                "let __getitem__ give as many for each, or give the DataLoader a collate_fn",
            )
        return [gather(parts) for parts in zip(*batch)]
    if is_tensor(first):
        return Column([tensor.detach().numpy() for tensor in batch])
    raise Error(
        "data",
        f"an example has a part of type {type(first).__name__}, which makes no batch",
        "use arrays, numbers, texts, and lists, tuples and dicts of them, or give the DataLoader a "
        "collate_fn",
    )


class Column:
    """What becomes one array: arrays of equal shape to be stacked, or one that is whole already."""

    __slots__ = ("arrays", "stacked", "shape", "dtype")

    def __init__(self, arrays, stacked=False):
        first = arrays[0]
        self.arrays, self.stacked = arrays, stacked
        self.shape = first.shape if stacked else (len(arrays), *first.shape)
        self.dtype = first.dtype
        for place, array in enumerate(arrays):
            if array.shape != first.shape:
                raise Error(
                    "data",
                    f"example {place} of a batch has the shape {list(array.shape)}, example 0 "
                    f"{list(first.shape)}",
                    "let __getitem__ give one shape, or give the DataLoader a collate_fn",
                )
            if array.dtype != self.dtype:
                self.dtype = numpy.result_type(self.dtype, array.dtype)

    @property
    def nbytes(self):
        """Bytes of the array."""
        return int(numpy.prod(self.shape, dtype=numpy.int64)) * self.dtype.itemsize

    def write(self, array):
        """Writes the values into `array`, which has this shape and type, and returns it."""
        if self.stacked:
            numpy.copyto(array, self.arrays[0])
        elif self.arrays[0].ndim and self.arrays[0].nbytes >= 1024:
            for row, values in zip(array, self.arrays):
                row[...] = values
        else:
            numpy.stack(self.arrays, out=array)
        return array


def fill(tree, allocate):
    """`tree` with the array of each Column, made by allocate(shape, dtype)."""
    if isinstance(tree, Column):
        if tree.dtype.hasobject:
            return tree.write(numpy.empty(tree.shape, tree.dtype))
        return tree.write(allocate(tree.shape, tree.dtype))
    if isinstance(tree, dict):
        return {key: fill(part, allocate) for key, part in tree.items()}
    if isinstance(tree, list):
        return [fill(part, allocate) for part in tree]
    return tree


def bytes_of(tree):
    """Bytes that the arrays of all Columns take, each aligned."""
    if isinstance(tree, Column):
        return aligned(tree.nbytes)
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return sum(bytes_of(part) for part in parts)


def aligned(size):
    """`size` rounded up to ALIGNMENT."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def convert(tree, function):
    """`tree` with function(array) for each array in its lists, tuples and dicts."""
    if isinstance(tree, numpy.ndarray):
        return function(tree)
    if isinstance(tree, dict):
        return {key: convert(part, function) for key, part in tree.items()}
    if type(tree) in (list, tuple):
        return type(tree)(convert(part, function) for part in tree)
    return tree


def as_it_is(example):
    """What batch_size=None gives: the example, with lists for its tuples, as Paddle does."""
    if isinstance(example, numpy.ndarray) or is_tensor(example) or isinstance(example, (str, bytes)):
        return example
    if isinstance(example, collections.abc.Mapping):
        return {key: as_it_is(part) for key, part in example.items()}
    if isinstance(example, collections.abc.Sequence):
        return [as_it_is(part) for part in example]
    return example


def is_tensor(value):
    """Whether `value` is a PyTorch tensor; PyTorch is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)

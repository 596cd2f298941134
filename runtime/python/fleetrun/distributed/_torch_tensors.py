"""Tensors as calls take them, without gaps, and back where they came from."""

import math

import torch

from fleetrun._error import Error

__all__ = [
    "apart", "bytes_of", "check_count", "check_parts", "check_rows", "check_whole", "contiguous", "cut",
    "evenly", "put", "row_bytes", "spread",
]  # fmt: skip


def contiguous(tensor):
    """A tensor's memory where that has no gaps, else a copy. Throws: Error(config) for what is not dense and
    in the host's memory."""
    _check(tensor)
    return tensor.detach().contiguous()


def apart(tensors):
    """contiguous() of each, in memory of its own: what a call writes for one, none of the others gives."""
    flats = [contiguous(tensor) for tensor in tensors]
    end, order = 0, sorted(range(len(flats)), key=lambda i: flats[i].data_ptr())
    for i in order:
        begin = flats[i].data_ptr()
        is_shared, end = begin < end, max(end, begin + flats[i].numel() * flats[i].element_size())
        if is_shared:
            flats[i] = flats[i].clone()
    return flats


def bytes_of(tensor):
    """A tensor's values as bytes, in one dimension: its own memory where that has no gaps."""
    flat = contiguous(tensor)
    # One value has no gaps whatever its strides are, which a view as bytes would ask for.
    return flat.as_strided((flat.numel(),), (1,)).view(torch.uint8)


def _check(tensor):
    if tensor.device.type != "cpu" or tensor.layout != torch.strided:
        raise Error(
            "config",
            f'backend "fleetrun" with a tensor on {tensor.device}, layout {tensor.layout}',
            "give it dense tensors in the host's memory",
        )


# What one rank can see for itself is refused before the call, so that the group goes on.


def check_count(name, parts, ranks):
    """Throws: Error(config) unless there is one for each rank."""
    if len(parts) != ranks:
        raise Error("config", f"{name} with a list of {len(parts)} tensors, and the group has {ranks} ranks")


def check_parts(name, tensor, parts, ranks):
    """Throws: Error(config) unless there is one for each rank, as large as `tensor` and of its type."""
    check_count(name, parts, ranks)
    for rank, part in enumerate(parts):
        if part.numel() != tensor.numel() or part.dtype != tensor.dtype:
            raise Error("config", f"{name} of {_told(tensor)}, and rank {rank}'s is {_told(part)}")


def check_whole(name, whole, part, ranks):
    """Throws: Error(config) unless `whole` has as much room as a part of each rank."""
    if whole.numel() != ranks * part.numel() or whole.dtype != part.dtype:
        raise Error("config", f"{name}: {_told(whole)} is not {ranks} times {_told(part)}")


def check_rows(name, tensor, sizes, ranks):
    """Throws: Error(config) unless `sizes` are so many rows for each rank as the tensor has."""
    if sizes and (len(sizes) != ranks or sum(sizes) != tensor.shape[0]):
        raise Error("config", f"{name} of {_told(tensor)}, split as {list(sizes)} among {ranks} ranks")


def _told(tensor):
    return f"{tensor.dtype} of shape {list(tensor.shape)}"


def put(tensor, flat):
    """The values of a contiguous copy, back where there are gaps."""
    if flat.data_ptr() != tensor.data_ptr():
        with torch.no_grad():
            values = flat.view(tensor.dtype) if flat.dtype != tensor.dtype else flat
            tensor.copy_(values.view(tensor.shape))


def spread(outputs, joined):
    with torch.no_grad():
        for output, part in zip(outputs, joined):
            output.copy_(part.view(output.shape))


def cut(taken, sizes, outputs):
    for part, output in zip(taken.split(sizes), outputs):
        put(output, part)


def row_bytes(tensor):
    return tensor.element_size() * math.prod(tensor.shape[1:])


def evenly(tensor, ranks):
    if tensor.shape[0] % ranks:
        raise Error("config", f"all_to_all of {tensor.shape[0]} rows among {ranks} ranks without split sizes")
    return [tensor.shape[0] // ranks] * ranks

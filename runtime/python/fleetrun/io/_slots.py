"""Batches from one process to another without a copy: slots of anonymous memory that both have mapped.

A worker writes a batch into a slot, the parent makes arrays of that very memory, and when the last of them is
gone the slot goes back to the worker, whose next batch is written into pages that are there already. The
memory has no name (memfd): it is gone with the last process that maps it, however that one ends, and /dev/shm
is not used.
"""

import dataclasses
import io
import mmap
import os
import pickle
import weakref

import numpy

from fleetrun.io._collate import aligned, is_tensor
from fleetrun.io._kernel import memory_file

SHORT = 16384  # bytes of a pickle that go with the message


class Arena:
    """The worker's side: owns the slots. Single-threaded."""

    def __init__(self):
        self._slots = []
        self._free = []

    def take(self, size):
        """A free Slot of at least `size` bytes; a new one where there is none. One that has become too small
        is replaced."""
        fitting = [slot for slot in self._free if slot.size >= size]
        if fitting:
            slot = min(fitting, key=lambda one: one.size)
            self._free.remove(slot)
        elif self._free:
            number = self._free.pop().number
            slot = self._slots[number] = Slot(number, size)
        else:
            slot = Slot(len(self._slots), size)
            self._slots.append(slot)
        slot.used = 0
        return slot

    def give_back(self, numbers):
        """Nobody has an array in these slots any more."""
        self._free.extend(self._slots[number] for number in numbers)


class Slot:
    """Memory for one batch. `descriptor` is sent to the parent once, and then closed and None."""

    def __init__(self, number, size):
        self.number = number
        self.size = _rounded(size)
        self.used = 0
        self.descriptor: int | None = memory_file("fleetrun-batch")
        os.ftruncate(self.descriptor, self.size)
        self.memory = _map(self.descriptor, self.size)
        self.address = _address(self.memory)

    def sent(self):
        """The parent has the descriptor."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def empty(self, shape, dtype):
        """An array in the slot."""
        size = int(numpy.prod(shape, dtype=numpy.int64)) * dtype.itemsize
        part = self._part(size)
        return part.view(dtype).reshape(shape)

    def place_of(self, raw):
        """(0, offset, size) of the bytes `raw` if they lie in this slot, else None."""
        offset = _address(raw) - self.address
        return (0, offset, raw.nbytes) if raw.nbytes and 0 <= offset <= self.size - raw.nbytes else None

    def copy_in(self, raw):
        """(offset, size) of a copy of the bytes `raw`."""
        offset, size = self.used, len(raw)
        if size:
            self._part(size)[:] = numpy.frombuffer(raw, numpy.uint8)
        return offset, size

    def _part(self, size):
        part = self.memory[self.used : self.used + size]
        self.used += aligned(size)
        return part


class Mappings:
    """The parent's side: the slots of one worker. Arrays may be dropped by any thread."""

    def __init__(self, dropped):
        self._memory = {}
        self._dropped = dropped

    def add(self, number, descriptor):
        """Maps a slot that is new or bigger than before; closes the descriptor."""
        try:
            self._memory[number] = _map(descriptor, os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)

    def lend(self, number):
        """The slot's bytes; dropped(number) is called when nothing of them is used any more."""
        lent = self._memory[number][:]
        # The finalizer sits on an object of its own: a view of a view leads numpy back to the mapping.
        owner = numpy.frombuffer(memoryview(lent), numpy.uint8)
        weakref.finalize(owner, self._dropped, number).atexit = False
        return owner


@dataclasses.dataclass
class Packed:
    """A batch ready to be sent: `places` (which slot, offset, size) of the parts that lie in `slots`; the
    first of all parts is the pickle, given apart in `text` when it is short."""

    slots: list
    places: list
    text: bytes | None = None


def pack(batch, arena, slot=None):
    """Packed: `batch` with its arrays as they are, all else pickled. Arrays that lie in `slot` stay where
    they are, others are copied into one of the arena's."""
    arrays = []
    stream = io.BytesIO()
    _Pickler(stream, 5, buffer_callback=lambda part: arrays.append(part.raw())).dump(batch)
    text = stream.getvalue()
    packed = Packed([slot] if slot else [], [slot and slot.place_of(part) for part in arrays])
    # A long message could fill the socket while the parent fills the other direction, and both would wait for
    # ever.
    inline = len(text) <= SHORT
    rest: list[int | None] = [] if inline else [None]
    rest += [index for index, place in enumerate(packed.places) if place is None]
    if rest:
        other = arena.take(
            sum(aligned(len(text) if index is None else arrays[index].nbytes) for index in rest)
        )
        packed.slots.append(other)
        for index in rest:
            place = (len(packed.slots) - 1, *other.copy_in(text if index is None else arrays[index]))
            if index is None:
                packed.places.insert(0, place)
            else:
                packed.places[index + (not inline)] = place
    if inline:
        packed.text = text
    return packed


def unpack(memories, places, text):
    """The batch that was packed; its arrays lie in `memories`, one for each slot."""
    parts = [memories[which][offset : offset + size] for which, offset, size in places]
    return pickle.loads(parts.pop(0) if text is None else text, buffers=parts)


class _Pickler(pickle.Pickler):
    """Takes PyTorch's tensors as the arrays that they are: left to themselves they would be copied twice."""

    def reducer_override(self, value):
        if is_tensor(value) and type(value).__name__ == "Tensor" and value.device.type == "cpu":
            import torch

            try:
                return torch.from_numpy, (value.detach().numpy(),)
            except TypeError:
                pass  # a type that numpy has not: pickled as PyTorch does it
        return NotImplemented


def _address(memory):
    return numpy.asarray(memory).__array_interface__["data"][0]


def _map(descriptor, size):
    return numpy.frombuffer(mmap.mmap(descriptor, size, mmap.MAP_SHARED | mmap.MAP_POPULATE), numpy.uint8)


def _rounded(size):
    """A little more than `size`, so that batches of nearly equal sizes find each other's slots fitting."""
    step = max(mmap.PAGESIZE, 1 << max(0, size.bit_length() - 5))
    return -(-size // step) * step or step

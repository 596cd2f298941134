"""Named arrays in one file, in the safetensors format: what fleetrun predict reads too
(runtime/inference/tensor_file.h).

Source: the format's description, https://github.com/huggingface/safetensors.
"""

import json
import struct

import numpy

from fleetrun._error import Error

_TYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "BOOL": "|b1"}
_NAMES = {numpy.dtype(layout): name for name, layout in _TYPES.items()}


def packed(values):
    """{name: array} as the bytes of a file: float32, float64, int32, int64, bool."""
    header, pieces, offset = {}, [], 0
    for name, value in values.items():
        piece = numpy.ascontiguousarray(value).tobytes()
        header[name] = {
            "dtype": _NAMES[value.dtype],
            "shape": list(value.shape),
            "data_offsets": [offset, offset + len(piece)],
        }
        pieces.append(piece)
        offset += len(piece)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *pieces])


def unpacked(data, path):
    """{name: array} of such bytes. Throws: Error(data) naming `path`, for a file that is cut or holds
    something else."""
    try:
        (length,) = struct.unpack_from("<Q", data)
        if length > len(data) - 8:
            raise ValueError(f"its header should have {length} bytes, the file has {len(data)}")
        header = json.loads(data[8 : 8 + length])
        values = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            if not 0 <= begin <= end <= len(data) - 8 - length:
                raise ValueError(f"{name} should be at {begin} to {end} of {len(data) - 8 - length} bytes")
            values[name] = (
                numpy.frombuffer(data[8 + length + begin : 8 + length + end], _TYPES[entry["dtype"]])
                .reshape(entry["shape"])
                .copy()
            )
        return values
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error) as error:
        raise Error("data", f"{path} is damaged: {error}", "copy or save the model again") from error

"""paddle.static.serialize_program and its kin: the files of an inference model as bytes."""

from __future__ import annotations

from fleetrun import _lazy, _tensors, framework
from fleetrun._types import Any, Fetches, Program
from fleetrun.static import io

__all__ = [
    "deserialize_persistables", "deserialize_program", "load_from_file", "normalize_program", "save_to_file",
    "serialize_persistables", "serialize_program",
]  # fmt: skip


def normalize_program(program: Program, feed_vars: Fetches, fetch_vars: Fetches, **kwargs: Any) -> Program:
    """The part of `program` that computes fetch_vars from feed_vars, for test."""
    return io.prune(program, io.names_of(feed_vars), io.names_of(fetch_vars))


def serialize_program(
    feed_vars: Fetches, fetch_vars: Fetches, program: Program | None = None, **kwargs: Any
) -> bytes:
    """What save_inference_model writes to .pdmodel."""
    pruned = normalize_program(program or framework.default_main_program(), feed_vars, fetch_vars)
    return io._text_of(pruned, io.names_of(feed_vars), io.names_of(fetch_vars))


class Desc:
    """Program.desc."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def serialize_to_string(self) -> bytes:
        """The whole program, for Program.parse_from_string() where it has no gradients."""
        return io._text_of(self._program, [], [])


def serialize_persistables(
    feed_vars: Fetches, fetch_vars: Fetches, executor: Any, program: Program | None = None, **kwargs: Any
) -> bytes:
    """What save_inference_model writes to .pdiparams."""
    pruned = normalize_program(program or framework.default_main_program(), feed_vars, fetch_vars)
    return _tensors.packed(io._kept(pruned))


def deserialize_program(data: bytes) -> Program:
    """The program of serialize_program(), Paddle's or of here. Throws: Error(data)."""
    return io.parsed(data)


def deserialize_persistables(program: Program, data: bytes, executor: Any) -> None:
    """Puts the values of serialize_persistables() into the scope. Throws: Error(data)."""
    io.set_values(program, _tensors.unpacked(data, "deserialize_persistables"), "deserialize_persistables")


def save_to_file(path: str, content: bytes) -> None:
    """Writes bytes beside their place, then moves them there. Throws: Error(host)."""
    io._write(path, content)


def load_from_file(path: str) -> bytes:
    """The bytes of a file. Throws: Error(data)."""
    return io._read(path)


__getattr__, __dir__ = _lazy.attach(__name__)

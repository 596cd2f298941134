"""A program as the one block that it is: where Paddle's have blocks, bodies of loops and branches are
programs of their own here."""

from __future__ import annotations

from typing import TypeVar

from fleetrun._error import Error

__all__ = ["OneBlock"]

Self = TypeVar("Self", bound="OneBlock")


class OneBlock:
    """The part of Program that says which blocks there are."""

    num_blocks = 1
    idx = 0
    parent_idx = -1

    def global_block(self: Self) -> Self:
        """The one block that a program has: itself."""
        return self

    current_block = global_block

    @property
    def program(self: Self) -> Self:
        """Of a block: the program."""
        return self

    @property
    def blocks(self: Self) -> list[Self]:
        """The one block."""
        return [self]

    def block(self: Self, index: int) -> Self:
        """The one block, 0. Throws: Error(config) for another."""
        if index != 0:
            raise Error("config", f"Program.block({index}): a program has one block", "use global_block()")
        return self

    @property
    def current_block_idx(self) -> int:
        """The one block, 0. Set to another, it would have operators go elsewhere. Throws: Error(config)."""
        return 0

    @current_block_idx.setter
    def current_block_idx(self, index: int) -> None:
        if index != 0:
            raise Error(
                "config",
                f"Program.current_block_idx = {index}: a program has one block",
                "write what is to be computed before a loop in front of it",
            )

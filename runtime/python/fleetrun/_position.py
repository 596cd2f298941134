"""Where a reader is, kept on the servers with what was trained of it: fleetrun.ps.Position.

A table of sums has two rows of a trainer, which take turns: a push adds to one of them what turns it into the
new place, and the other one has the place before. Of a push that was under way when the trainer died some
servers may have their part and others not; the client goes on at its number (Client.next_change), and so the
row with that number does not count.
"""

from __future__ import annotations

import os

import numpy as np

from fleetrun._error import Error
from fleetrun._types import Any, ArrayLike, Mapping

# Three whole numbers of 64 bits, in pieces that float32 adds up exactly: how many places there have been, the
# number of the push, the place.
_PIECES, _BITS = 3, 22
WIDTH = 3 * _PIECES


def _to_row(numbers):
    return [number >> _BITS * piece & (1 << _BITS) - 1 for number in numbers for piece in range(_PIECES)]


def _from_row(row):
    pieces = [int(value) for value in row]
    return [sum(pieces[at + piece] << _BITS * piece for piece in range(_PIECES))
            for at in range(0, WIDTH, _PIECES)]  # fmt: skip


class Position:
    """Where the reader of a trainer is: a whole number of its own, an offset or a count, kept with each push.

        tables = [ps.SparseTable("emb", 8), ps.PositionTable()]
        with ps.Client(tables, identity=1 + rank) as client:
            position = ps.Position(client)
            for batch in read_from(position.offset):
                position.push({"emb": (batch.keys, gradients(batch))}, batch.end)

    A trainer that was killed and comes back with its identity goes on at `offset`, and every example counts
    once: the servers keep place and push as one change. What it reads from a place on has to be the same
    each time. The servers have to outlive what is to be survived: --max_restart, --ps_checkpoint; a save has
    the places, too.
    Mode async. Threads: one. Throws: Error(config) for a client without an identity, or another table.
    """

    def __init__(self, client: Any, table: str = "position") -> None:
        if client.mode != "async":
            raise Error(
                "config",
                f"a position in mode '{client.mode}', which changes what pushes add up to",
                "use mode async; in sync mode the servers know the steps",
            )
        if not 0 < client.identity < 2**63:
            raise Error(
                "config",
                f"a position of a client with the identity {client.identity}",
                "give Client(identity=) a number from 1 to 2**63 - 1, the same in each of its lives",
            )
        _, entry, _ = client._table(table, True)
        if entry.width != WIDTH or entry._parts[0].get("kind") != "sum":
            raise Error("config", f"table '{table}' is not for positions", "declare it by ps.PositionTable()")
        if (shortened := os.environ.get("FLEETRUN_PS_GRADIENTS") or "float32") != "float32":
            raise Error(
                "config",
                f"a position with FLEETRUN_PS_GRADIENTS={shortened}, which cuts off what is pushed",
                "leave it out, or set it to float32",
            )
        self._client, self._table, self._is_known = client, table, True
        self._keys = np.array([2 * client.identity, 2 * client.identity + 1], np.uint64)
        self._read()

    def _read(self) -> None:
        self._rows = [_from_row(row) for row in self._client.get(self._table, self._keys)["values"]]
        going_on = self._client.next_change
        done = [row for row in self._rows if row[0] and row[1] != going_on]
        last = max(done, default=[0, 0, 0])
        self._count, self._offset = last[0], last[2]

    @property
    def offset(self) -> int:
        """Of the last push that all servers have, or will have before any later one; 0 before the first."""
        return self._offset

    def push(self, tables: Mapping[str, tuple[ArrayLike, ArrayLike]], offset: int) -> None:
        """Client.push_many(), and the reader is at `offset`: one change, all of it or nothing.
        Throws: as that, and Error(config) for an offset that is not from 0 to 2**64 - 1."""
        if not isinstance(offset, (int, np.integer)) or not 0 <= offset < 2**64:
            raise Error("config", f"the offset is {offset!r}, not a whole number from 0 to 2**64 - 1")
        if not self._is_known:
            raise Error(
                "config",
                "an earlier push of this position failed, and may have been applied",
                "make the client anew, with its identity, and a position of it",
            )
        count = self._count + 1
        row = [count, self._client.next_change, int(offset)]
        change = np.subtract(_to_row(row), _to_row(self._rows[count % 2]))
        self._is_known = False
        try:
            self._client.push_many({**tables, self._table: (self._keys[count % 2 : count % 2 + 1], [change])})
        except Error as error:
            if error.kind in ("config", "data"):  # it was refused: the rows are as they say
                self._read()
                self._is_known = True
            raise
        self._rows[count % 2], self._count, self._offset = row, count, int(offset)
        self._is_known = True

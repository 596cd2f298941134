"""Rows of parameter servers for the layers of another framework (fleetrun.torch, fleetrun.paddle): several
layers' rows in one request, perhaps ahead of their forward, and several layers' gradients in one push."""

from __future__ import annotations

import concurrent.futures
import functools
import weakref
from typing import TYPE_CHECKING, Any

import numpy

from fleetrun import _native

if TYPE_CHECKING:
    from fleetrun.ps import Client

# How often rows were changed from here, by client.
_changes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def distinct(keys: numpy.ndarray, sizes: list[int]) -> tuple[numpy.ndarray, numpy.ndarray, list[int]]:
    """(distinct keys, places, counts) of the keys of several layers, one after the other: how many distinct
    keys each has, and where each key is among its layer's. Shape: keys int64 [sum of sizes]."""
    found, places, counts = _native.ps_distinct(keys.view(numpy.uint64), sizes)
    return numpy.asarray(found), numpy.asarray(places), counts


class Part:
    """One layer's part of a request: the rows of distinct keys."""

    def __init__(self, request: Request, table: str, keys: numpy.ndarray, begin: int) -> None:
        self.keys = keys
        self._request, self._table, self._begin = request, table, begin

    def is_fresh(self, creates: bool) -> bool:
        """Whether it is what a forward would ask for now."""
        return self._request.creates == creates and self._request.is_fresh()

    def rows(self) -> numpy.ndarray:
        """Shape: float32 [keys, width]."""
        return self._request.answer()[self._table][self._begin : self._begin + len(self.keys)]


class Request:
    """Rows of several layers of a client, asked for in one message. creates: unknown keys get rows."""

    def __init__(self, client: Client, creates: bool) -> None:
        self.creates = creates
        self._client = client
        self._parts: dict[str, list[numpy.ndarray]] = {}
        self._answer: Any = None
        self._changes = 0

    def add(self, table: str, keys: numpy.ndarray) -> Part:
        """A layer's part. Shape: keys [distinct keys]."""
        parts = self._parts.setdefault(table, [])
        part = Part(self, table, keys, sum(len(each) for each in parts))
        parts.append(keys)
        return part

    def start(self) -> None:
        """Asks now, in a thread. In mode sync not before a forward needs it: a step may come in between."""
        if self._client.mode != "sync":
            self._answer = _thread().submit(self._pull)

    def is_fresh(self) -> bool:
        """In mode sync no row is older than the newest step."""
        asked = self._answer is not None
        return not asked or self._client.mode != "sync" or self._changes == _changes.get(self._client, 0)

    def answer(self) -> dict[str, numpy.ndarray]:
        """Rows by table."""
        if self._answer is None:
            self._changes = _changes.get(self._client, 0)
            self._answer = self._pull()
        if isinstance(self._answer, concurrent.futures.Future):
            self._answer = self._answer.result()
        return self._answer

    def _pull(self) -> dict[str, numpy.ndarray]:
        keys = {table: _joined(parts) for table, parts in self._parts.items()}
        return self._client.pull_many(keys, self.creates)


@functools.cache
def _thread() -> concurrent.futures.ThreadPoolExecutor:
    return concurrent.futures.ThreadPoolExecutor(1, "fleetrun-prefetch")


def _joined(parts: list[numpy.ndarray]) -> numpy.ndarray:
    return parts[0] if len(parts) == 1 else numpy.concatenate(parts)


def push(client: Client, tables: dict[str, list[tuple[numpy.ndarray, numpy.ndarray]]]) -> None:
    """One push of each table's (keys, gradients). Without rows it is a step in mode sync, else nothing."""
    joined = {name: [_joined(list(part)) for part in zip(*parts)] for name, parts in tables.items()}
    if client.mode != "sync":
        joined = {name: parts for name, parts in joined.items() if len(parts[0])}
    if joined:
        note_change(client)
        client.push_many({name: (keys, steps) for name, (keys, steps) in joined.items()})


def note_change(client: Client) -> None:
    """Rows were changed: in mode sync what was asked for before is old."""
    _changes[client] = _changes.get(client, 0) + 1

"""How ranks meet for init_process_group over env://: by PyTorch's store, and without one where ranks are
replaced."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlparse

import torch.distributed as torch_distributed

from fleetrun._error import Error
from fleetrun.distributed import collectives as calls
from fleetrun.distributed._membership import the_member
from fleetrun.distributed._world import the_world

__all__ = ["meet_over_environment"]


class _NoStore(torch_distributed.Store):
    """In the place of the store in which ranks of other backends meet: that of rank 0 would be lost with
    it."""

    def _refuse(self, *_: Any) -> Any:
        raise Error(
            "config",
            "the store of torch.distributed in a job with --on_failure=replace: what is in it would be lost "
            "with a rank",
            'use groups of backend "fleetrun" alone, and calls of all ranks instead of values in a store',
        )

    add = append = check = compare_set = delete_key = get = multi_get = multi_set = num_keys = set = _refuse
    wait = _refuse


_no_store = _NoStore()  # native code holds the Python half by nothing
_Meeting = Iterator[tuple[torch_distributed.Store, int, int]]
_handlers = torch_distributed.rendezvous.__globals__["_rendezvous_handlers"]
_by_store = _handlers["env"]


def _meet_without_store(*_: Any, **__: Any) -> _Meeting:
    """Our world has its own, and who stands by waits there."""
    yield _no_store, the_world.rank, the_world.size


def _meet_again(url: str, *others: Any, **more: Any) -> _Meeting:
    """After destroy_process_group rank 0 opens its store anew at the same port. Who connects before it has
    closed the old one is cut off, so ranks that know each other come together first."""
    asked = parse_qs(urlparse(url).query).get("world_size", [os.environ.get("WORLD_SIZE")])[-1]
    if the_world.is_joined and asked == str(the_world.size):
        calls.barrier()
    yield from _by_store(url, *others, **more)


def meet_over_environment() -> None:
    """Takes the place of PyTorch's rendezvous env://."""
    _handlers["env"] = _meet_again if the_member() is None else _meet_without_store

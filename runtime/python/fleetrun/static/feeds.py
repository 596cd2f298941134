"""What a run is fed by the script, and by the DataLoaders of its program."""

from __future__ import annotations

from fleetrun._error import Error
from fleetrun._types import Any, Iterator, Mapping, Program, Sequence
from fleetrun.core import EOFException
from fleetrun.static._runs import LOADERS
from fleetrun.static.training import is_trained

__all__ = ["complete_feeds"]


def complete_feeds(program: Program, feeds: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Each of `feeds`, those of the replicas of a step: {name: array} of what is fed, and of what the
    program's DataLoaders have for the rest. An evaluation gets fewer at the end of loaders that keep their
    last batches.

    Throws: Error(config), core.EOFException when a DataLoader has no more batches.
    """
    keeps_last = not is_trained(program) and not any(loader.drop_last for loader in LOADERS.of(program))
    for number, feed in enumerate(feeds):
        try:
            yield _complete(program, feed)
        except EOFException:
            if number == 0 or not keeps_last:
                raise
            return


def _complete(program, feed):
    if isinstance(feed, (list, tuple)):
        if len(feed) > 1:
            raise Error(
                "config",
                f"Executor.run: feed has {len(feed)} parts",
                "there is one device: give it one {name: array}",
            )
        feed = feed[0] if feed else {}
    if not isinstance(feed, (Mapping, type(None))):
        raise Error("config", f"Executor.run: the feed is {type(feed).__name__}", "give it {name: array}")
    feed = dict(feed or {})
    for name in feed:
        if not isinstance(name, str):
            raise Error("config", f"Executor.run: feed {name!r} is not a name", "give it {name: array}")
    for loader in LOADERS.of(program):
        if any(name not in feed for name in loader.names):
            feed = {**loader.take(), **feed}
    return feed

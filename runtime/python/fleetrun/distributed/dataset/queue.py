"""QueueDataset: text files through a pipe command into batches, as the engine reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleetrun._error import Error
from fleetrun.distributed.dataset._base import DatasetBase

if TYPE_CHECKING:
    from fleetrun import _native

__all__ = ["FileInstantDataset", "QueueDataset"]


class QueueDataset(DatasetBase):
    """Streams `set_filelist` files through `pipe_command`, one process per file, into batches of `use_var`.

    Order: with one reader thread the files are read as they are listed. With several, each reader takes the
    next file that nobody has; where a result must repeat itself (sync mode), reader r takes the files r, r +
    readers, … A batch goes on from one file of a reader to its next; only the last batch of a reader may be
    short (set_drop_last).
    """

    def __init__(self) -> None:
        super().__init__()
        self._native: Any = None
        self._made_of: Any = None

    def native(self, threads: int = 0) -> _native.QueueDataset:
        """The engine's dataset; `threads` > 0 instead of thread_num. Throws: Error(config).

        It stays the same while no setting changes, and so a pass finds the pipes that the one before has
        started for it.
        """
        made_of = self._settings(threads)
        if self._native is None or made_of != self._made_of:
            self._native = None
            self._native = self._source(
                threads or self._readers, self._batch_size, drop_last=self._drop_last, starts_next_pass=True
            )
            self._made_of = made_of
        return self._native

    def local_shuffle(self) -> None:
        """Throws: Error(config): what is streamed is never there as a whole."""
        raise _no_shuffle()

    def global_shuffle(self, fleet: Any = None, thread_num: int = 12) -> None:
        """Throws: Error(config), as local_shuffle."""
        raise _no_shuffle()


def _no_shuffle():
    return Error(
        "config",
        "a QueueDataset does not shuffle",
        "use InMemoryDataset, or shuffle the files and their list",
    )


class FileInstantDataset(QueueDataset):
    """Paddle's dataset of binary files that something of Paddle's has written; they are not read here.
    Throws, when a pass begins: Error(config)."""

    _feed_type = "MultiSlotFileInstantDataFeed"

    def native(self, threads: int = 0) -> _native.QueueDataset:
        """Throws: Error(config)."""
        raise Error(
            "config",
            "FileInstantDataset: files of Paddle's MultiSlotFileInstantDataFeed are not read here",
            "use QueueDataset and MultiSlot text, or columnar files (fleetrun data convert)",
        )

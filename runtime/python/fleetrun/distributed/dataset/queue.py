"""QueueDataset: text files through a pipe command into batches, as the engine reads them."""

from fleetrun.distributed.dataset._base import DatasetBase


class QueueDataset(DatasetBase):
    """Streams `set_filelist` files through `pipe_command`, one process per file, into batches of `use_var`."""

    def native(self, threads=0):
        """The engine's dataset; `threads` > 0 instead of thread_num. Throws: Error(config)."""
        from fleetrun import _native

        return _native.QueueDataset(slots=self._checked_slots(), pipe_command=self._pipe_command,
                                    batch_size=self._batch_size, threads=threads or self._threads, files=self._files)

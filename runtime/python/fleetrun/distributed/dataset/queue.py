"""QueueDataset: text files through a pipe command into batches, as the engine reads them."""

from fleetrun.distributed.dataset._base import DatasetBase


class QueueDataset(DatasetBase):
    """Streams `set_filelist` files through `pipe_command`, one process per file, into batches of `use_var`."""

    def native(self, threads=0):
        """The engine's dataset; `threads` > 0 instead of thread_num. Throws: Error(config)."""
        return self._source(threads=threads or self._threads, batch_size=self._batch_size)

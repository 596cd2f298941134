"""paddle.fluid.AsyncExecutor: what Paddle had before train_from_dataset. Source: Paddle 1.4."""

from __future__ import annotations

from fleetrun import _lazy, framework
from fleetrun._arguments import as_list, refuse
from fleetrun._types import Any, Fetches, Program
from fleetrun.distributed.dataset import QueueDataset
from fleetrun.fluid.data_feed_desc import DataFeedDesc
from fleetrun.static.executor import Executor

__all__ = ["AsyncExecutor"]


class _DescribedFiles(QueueDataset):
    """Files whose lines have slots that nothing uses, too."""

    def __init__(self, described: DataFeedDesc, program: Program) -> None:
        super().__init__()
        self._described = described.slots()
        block = program.global_block()
        self.set_use_var([block.var(name) for name, _, is_used in self._described if is_used])
        self.set_batch_size(described.batch_size)
        self.set_pipe_command(described.pipe_command)

    def _read_slots(self):
        used = iter(super()._read_slots())
        return [
            next(used) if is_used else (name, kind, False, 1, False)
            for name, kind, is_used in self._described
        ]


class AsyncExecutor:
    """Trains on files with several threads that share all parameters, as Executor.train_from_dataset does.

    place, run_mode: accepted; there is one kind of each.
    """

    def __init__(self, place: Any = None, run_mode: str = "") -> None:
        self._executor = Executor(place)

    def run_startup_program(self, program: Program | None = None, scope: Any = None) -> None:
        """Gives parameters their first values."""
        self._executor.run(program or framework.default_startup_program(), scope=scope)

    def run(
        self,
        program: Program | None,
        data_feed: DataFeedDesc,
        filelist: str | list[str],
        thread_num: int,
        fetch: Fetches,
        mode: str = "",
        debug: bool = False,
    ) -> None:
        """Trains `program` on every line of the files once. debug: the first thread prints `fetch` in each of
        its batches.

        Throws: Error(config) for mode="mpi": servers of jobs under MPI are reached through fleet.
        """
        refuse("fluid.AsyncExecutor.run", mode=(mode, ""))
        program = program or framework.default_main_program()
        files = _DescribedFiles(data_feed, program)
        files.set_filelist(filelist)
        files.set_thread(thread_num)
        shown = as_list(fetch)
        self._executor.train_from_dataset(program, files, fetch_list=shown if debug else None, print_period=1)


__getattr__, __dir__ = _lazy.attach(__name__)

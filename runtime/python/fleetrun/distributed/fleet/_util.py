"""fleet.util: files for this trainer, and small sums over all trainers."""

import os
from collections.abc import Iterator
from typing import Any

from fleetrun._arguments import refuse, warn_once
from fleetrun._error import Error


class UtilFactory:
    """Makes a UtilBase of {"role_maker", "valid_strategy"}."""

    def _create_util(self, context=None):
        made = UtilBase()
        made._set_strategy((context or {}).get("valid_strategy"))
        made._set_role_maker((context or {}).get("role_maker"))
        return made


def _taken(queue, training, number):
    """The files of a queue, for the pass of this number over them."""
    while (file := queue.next()) is not None:
        if training is not None:
            training.part = number
        yield file
    if training is not None:
        training.part = 0


class UtilBase:
    """Asks a Fleet for rank, size and the way to the other trainers: the process's when none is given."""

    # The process's, from when there is one.
    _fleet: Any = None

    def __init__(self, fleet: Any = None) -> None:
        if fleet is not None:
            self._fleet = fleet
        self._dynamic_passes = 0  # passes over shared files so far
        self.role_maker: Any = None
        self.dist_strategy: Any = None
        self.fs_client: Any = None

    def _set_strategy(self, dist_strategy):
        """Kept, as the next two: the Fleet has its own."""
        self.dist_strategy = dist_strategy

    def _set_role_maker(self, role_maker):
        self.role_maker = role_maker

    def _set_file_system(self, fs_client):
        self.fs_client = fs_client

    def get_file_shard(self, files: list[str]) -> list[str]:
        """This trainer's part of `files`: contiguous, sizes differ by at most one, the first trainers get
        more.

        Where hosts come and go they are split among the trainers that are there now, so call it for every
        pass. On a server: []. Throws: TypeError when `files` is not a list.
        """
        if not isinstance(files, list):
            raise TypeError("files should be a list of file names")
        if self._fleet.is_server():
            return []
        position, count = self._fleet.worker_position()
        size, extra = divmod(len(files), count)
        begin = position * size + min(position, extra)
        return files[begin : begin + size + (position < extra)]

    def get_dynamic_files(
        self, files: list[str], directory: str | os.PathLike[str] | None = None
    ) -> Iterator[str]:
        """An iterator over `files` that all trainers share: whoever is done with one takes the next.

        So a slow trainer does not set the pace. One pass over the files is one call, which every trainer
        makes, in the same order and with the same list:

            for file in fleet.util.get_dynamic_files(files):
                dataset.set_filelist([file])
                exe.train_from_dataset(program, dataset)

        A file is done when its trainer asks for the next one. Each is done once. The file of a trainer that
        dies waits for it where that is started again alone (--max_restart), and it goes on in the middle;
        elsewhere whoever asks next gets it from its beginning, so that its first examples may count twice.
        At the end everybody waits for the files that others still hold. Trainers that fleetrun starts again
        all together begin with all files anew.

        directory: where the trainers share which files are taken, in small hidden files; the job's log
        directory where it is not given. Trainers of several hosts need one that all of them see, on a file
        system with locks. On a server: nothing. Throws: Error(config) in sync mode, whose trainers must begin
        passes together; with several trainers that fleetrun did not start; with several hosts and no
        directory.
        """
        if not isinstance(files, list):
            raise TypeError("files should be a list of file names")
        if self._fleet.is_server():
            return iter(())
        names = [os.fspath(name) for name in files]
        if self._fleet.worker_num() == 1:
            return iter(names)
        training = self._fleet.training
        if training is not None and training.mode == "sync":
            raise Error(
                "config",
                "get_dynamic_files in sync mode, where all trainers begin each pass together",
                "use get_file_shard, or strategy.a_sync = True",
            )
        from fleetrun import _native

        goes_on = training is not None and training.connected and training.client.counts_epochs
        owner = self._fleet.worker_index() + 1 if goes_on else 0
        queue = _native.shared_file_queue(names, self._claims(directory), owner)
        return _taken(queue, training, self._dynamic_passes)

    def _claims(self, directory):
        """The name of the next pass's claims, the same on all trainers of this start of the job. Throws:
        Error(config)."""
        job = os.environ.get("FLEETRUN_RUN") or os.environ.get("FLEETRUN_POD")
        if not job:
            raise Error(
                "config",
                f"get_dynamic_files with {self._fleet.worker_num()} trainers that fleetrun did not start",
                "start them with fleetrun, or use get_file_shard",
            )
        nodes = int(os.environ.get("FLEETRUN_NODES", "1"))
        if directory is None and nodes > 1:
            raise Error(
                "config",
                f"get_dynamic_files on {nodes} hosts without a shared directory",
                "get_dynamic_files(files, directory=...), or get_file_shard",
            )
        self._dynamic_passes += 1
        # Of the group: a trainer that is started again alone goes on with the files of the others.
        group = os.environ.get("FLEETRUN_PS_RUN") or f"{job}.{os.environ.get('FLEETRUN_ATTEMPT', '0')}"
        name = f".files.{group}.{self._dynamic_passes}"
        return os.path.join(directory or os.environ["FLEETRUN_LOG_DIR"], name)

    def all_gather(self, input: float, comm_world: str = "worker") -> list[Any]:
        """The number `input` of every trainer that is there, in rank order. A barrier."""
        return [type(input)(value) for value in self._gather([float(input)], comm_world)[:, 0]]

    def all_reduce(self, input: Any, mode: str = "sum", comm_world: str = "worker") -> Any:
        """`input` reduced over all trainers by "sum", "max" or "min", in trainer order. A barrier.

        Shape: a number or an array, the same on every trainer; the result has its shape and type.
        Before init_worker() trainers meet each other without the servers. Throws: Error(config) for another
        mode, or then in a trainer that was started again alone.
        """
        import numpy

        if mode not in ("sum", "max", "min"):
            raise Error(
                "config",
                f'fleet.util.all_reduce(mode="{mode}") is not supported',
                'use "sum", "max" or "min"',
            )
        array = numpy.asarray(input)
        parts = self._gather(array.astype(numpy.float64).ravel(), comm_world)
        result = getattr(parts, mode)(axis=0).reshape(array.shape).astype(array.dtype)
        return result if isinstance(input, numpy.ndarray) else result.tolist()

    def is_catching_up(self) -> bool:
        """Whether this trainer was started again alone, in sync mode, and its script has not come to where
        the process before it ended: what it asks until then was done before. Not in Paddle."""
        training = self._fleet.training
        return (
            training is not None
            and training.distributed
            and training.connected
            and training.client.is_catching_up
        )

    def barrier(self, comm_world: str = "worker") -> None:
        """Returns when every trainer has called it. Servers meet nobody: on one, and for comm_world "server"
        or "all", that is said in a warning, as in Paddle without gloo."""
        if comm_world not in ("worker", "server", "all"):
            refuse("fleet.util.barrier", comm_world=(comm_world, "worker"))
        if comm_world != "worker":
            warn_once(
                f"util.barrier {comm_world}",
                f"fleet.util.barrier(comm_world={comm_world!r}): servers wait for nobody, only trainers do",
            )
        if comm_world == "worker" or (comm_world == "all" and self._fleet.is_worker()):
            self._fleet.barrier_worker()

    def print_on_rank(self, message: object, rank_id: int) -> None:
        """Prints `message` on the trainer of this rank only."""
        if self._fleet.worker_index() == rank_id:
            print(message, flush=True)

    def _gather(self, values, comm_world):
        """parts[trainers, values] of every trainer that takes part: each adds its row to zeros, so no sum is
        rounded."""
        import numpy

        # "all" are the trainers where there are no servers.
        if comm_world != "all" or self._fleet.server_num() > 0:
            refuse("fleet.util", comm_world=(comm_world, "worker"))
        # The last column says which ranks there are.
        parts = numpy.zeros((self._fleet.worker_num(), len(values) + 1))
        parts[self._fleet.worker_index()] = [*values, 1.0]
        parts = self._fleet.sum_over_trainers(parts)
        return parts[parts[:, -1] > 0, :-1]

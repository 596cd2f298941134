"""fleet.util: files for this trainer, and small sums over all trainers."""

from fleetrun._arguments import refuse
from fleetrun._error import Error


class UtilBase:
    """Made by the Fleet that it asks for rank, size and the way to the other trainers."""

    def __init__(self, fleet):
        self._fleet = fleet

    def get_file_shard(self, files):
        """This trainer's part of `files`: contiguous, sizes differ by at most one, the first trainers get more.

        Where hosts come and go they are split among the trainers that are there now, so call it for every pass.
        On a server: []. Throws: TypeError when `files` is no list.
        """
        if not isinstance(files, list):
            raise TypeError("files should be a list of file names")
        if self._fleet.is_server():
            return []
        position, count = self._fleet.worker_position()
        size, extra = divmod(len(files), count)
        begin = position * size + min(position, extra)
        return files[begin:begin + size + (position < extra)]

    def all_gather(self, input, comm_world="worker"):  # noqa: A002, Paddle's argument name
        """The number `input` of every trainer that is there, in rank order. A barrier."""
        return [type(input)(value) for value in self._gather([float(input)], comm_world)[:, 0]]

    def all_reduce(self, input, mode="sum", comm_world="worker"):  # noqa: A002, Paddle's argument name
        """`input` reduced over all trainers by "sum", "max" or "min", in trainer order. A barrier.

        Shape: a number or an array, the same on every trainer; the result has its shape and type.
        Throws: Error(config) for another mode or before init_worker().
        """
        import numpy

        if mode not in ("sum", "max", "min"):
            raise Error("config", f'fleet.util.all_reduce(mode="{mode}") is not supported', 'use "sum", "max" or "min"')
        array = numpy.asarray(input)
        parts = self._gather(array.astype(numpy.float64).ravel(), comm_world)
        result = getattr(parts, mode)(axis=0).reshape(array.shape).astype(array.dtype)
        return result if isinstance(input, numpy.ndarray) else result.tolist()

    def barrier(self, comm_world="worker"):
        """Returns when every trainer has called it."""
        refuse("fleet.util.barrier", comm_world=(comm_world, "worker"))
        self._fleet.barrier_worker()

    def print_on_rank(self, message, rank_id):
        """Prints `message` on the trainer of this rank only."""
        if self._fleet.worker_index() == rank_id:
            print(message, flush=True)

    def _gather(self, values, comm_world):
        """parts[trainers, values] of every trainer that takes part: each adds its row to zeros, so no sum is rounded."""
        import numpy

        refuse("fleet.util", comm_world=(comm_world, "worker"))
        # The last column says which ranks there are.
        parts = numpy.zeros((self._fleet.worker_num(), len(values) + 1))
        parts[self._fleet.worker_index()] = [*values, 1.0]
        parts = self._fleet.sum_over_trainers(parts)
        return parts[parts[:, -1] > 0, :-1]

"""A backend of torch.distributed: DistributedDataParallel, FSDP and DTensor over our collectives, unchanged.

    import fleetrun.distributed.torch_backend
    torch.distributed.init_process_group("fleetrun")

Ranks of a job that fleetrun or torchrun started find each other as all of ours do (fleetrun-collective(7)),
others by the store that torch.distributed has: init_process_group with rank=, world_size= and an init_method.
Tensors lie in the host's memory; all ranks get the same bits, in every run. A call with async_op=True begins
before it returns, and runs beside the caller.
Throws: Error(config) for what the collectives do not have, RuntimeError from a work's wait() for what failed.
"""

from __future__ import annotations

import collections
import datetime
import sys
import threading
import types
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any

import torch
import torch.distributed as torch_distributed
from torch._C._distributed_c10d import AllgatherOptions

from fleetrun import _native
from fleetrun._error import Error
from fleetrun.distributed import collectives as calls
from fleetrun.distributed._arrays import view
from fleetrun.distributed._generations import the_generations
from fleetrun.distributed._membership import the_member
from fleetrun.distributed._torch_ends import Ends, note
from fleetrun.distributed._torch_forms import in_every_form
from fleetrun.distributed._torch_gloo import stand_in_where_asked, warn_of_ignite
from fleetrun.distributed._torch_hooks import Told, told
from fleetrun.distributed._torch_meeting import meet_over_environment
from fleetrun.distributed._torch_messages import MessageWork, Monitor
from fleetrun.distributed._torch_older import shut_down_when_destroyed
from fleetrun.distributed._torch_profile import recorded
from fleetrun.distributed._torch_sparse import SparseSums
from fleetrun.distributed._torch_tensors import (
    apart,
    bytes_of,
    check_count,
    check_parts,
    check_rows,
    check_whole,
    contiguous,
    cut,
    evenly,
    put,
    row_bytes,
    spread,
)
from fleetrun.distributed._torch_works import done, end, end_soon, let_works_wait, started
from fleetrun.distributed._torchrun import meeting_place_of
from fleetrun.distributed._untraced import leave_untraced
from fleetrun.distributed._world import Group, the_world

__all__ = ["ProcessGroup", "register"]

_KIND = _native.CallKind
_OPERATIONS = ("SUM", "AVG", "MIN", "MAX", "PRODUCT", "BAND", "BOR", "BXOR")
_OLDEST = (2, 6)
# Below, a call of ranks that come together is over before another thread could be told to wait for it.
_SMALL_BYTES = 256 * 1024


@leave_untraced
@told
class ProcessGroup(Told):
    """What torch.distributed calls; `group` has the ranks in its order."""

    supports_splitting = True
    # What PyTorch's own property asks of a native backend, which there is none of here.
    supports_coalescing = supports_completion_hooks = supports_reconfigure = supports_shrinking = False
    supports_tensor_alloc = supports_window = use_pg_for_symm_mem_rendezvous = False

    def __init__(self, rank: int, size: int, group: Group, name: str, asked_as: str, store: Any) -> None:
        super().__init__(rank, size)
        self._name = name
        self.asked_as = asked_as
        self._store = store
        self._group = group
        self._ends = Ends(group)
        self._sparse = SparseSums(group)
        self._monitor = Monitor()

    def getBackendName(self) -> str:
        """Its name, also where it stands in for gloo: native code looks for gloo itself in one so named."""
        return "fleetrun"

    def _get_backend_name(self) -> str:
        """What Python code asks that goes another way for gloo."""
        return self.asked_as

    name = _get_backend_name

    @property
    def group_name(self) -> str:
        """What torch.distributed calls it; native code finds it by this name."""
        return self._name

    @property
    def options(self) -> types.SimpleNamespace:
        """What pipelines take over for the groups that they split off."""
        within = self._group.call_within
        return types.SimpleNamespace(_timeout=None if within is None else datetime.timedelta(seconds=within))

    def get_group_store(self) -> torch_distributed.Store:
        """That by which its ranks met."""
        return self._store

    def split_group(
        self,
        ranks: Sequence[int],
        timeout: datetime.timedelta | None = None,
        opts: Any = None,
        group_name: str | None = None,
        group_desc: str | None = None,
        device_types: Any = None,
    ) -> ProcessGroup | None:
        """A group of these places of this one; None: this rank is not among them."""
        if self.rank() not in ranks:
            return None
        members = [self._group.ranks[place] for place in ranks]
        within = self.options._timeout if timeout is None else timeout
        name = group_name or f"{self._name}:split:{'-'.join(map(str, ranks))}"
        return _grouped(members, within, name, self.asked_as, self._store)

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("cpu")]

    def shutdown(self) -> None:
        """Lets the group go: torch.distributed.destroy_process_group."""
        self._ends.close()
        self._sparse.close()
        self._group.close()
        the_world.groups.pop(self._group.id, None)

    def abort(self) -> None:
        """The calls under way fail, and all later ones, on the other ranks too."""
        super().abort()
        self._group.abort(f"a rank has aborted {self._group.name}")
        the_world.groups.pop(self._group.id, None)

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """What calls to come may take, of this rank."""
        self._group.set_call_within(timeout.total_seconds())

    def _get_backend(self, device: torch.device) -> Any:
        """What makes the calls on tensors of a device: this."""
        return self

    # ---- calls of all ranks ----

    @in_every_form(torch_distributed.AllreduceOptions, 1, "op")
    @recorded("all_reduce")
    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        """Each tensor = the ranks' tensors reduced."""
        operation = _operation(opts, "all_reduce")
        if any(tensor.is_sparse for tensor in tensors):
            return self._sparse.start(tensors, operation, not _is_beside(opts) or _is_in_backward())
        works = [self._reduced(*each, operation) for each in zip(tensors, apart(tensors))]
        return self._each_started(works, list(tensors), opts)

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        """As allreduce."""
        return self.allreduce(tensors, opts)

    @in_every_form(torch_distributed.BroadcastOptions, 1, "root")
    @recorded("broadcast")
    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> Any:
        """Each tensor = that of opts.rootRank."""
        root = opts.rootRank

        def start(tensor, sync):
            flat = bytes_of(tensor)
            values = view(flat)
            call = _native.Call(_KIND.broadcast, values, values, values.count, root=root)
            return self._start(call, sync, lambda: put(tensor, flat))

        return self._each(tensors, lambda each: (each, start), opts)

    @in_every_form(torch_distributed.ReduceOptions, 1, "root", "op")
    @recorded("reduce")
    def reduce(self, tensors: list[torch.Tensor], opts: Any) -> Any:
        """On opts.rootRank each tensor = the ranks' tensors reduced."""
        operation, root = _operation(opts, "reduce"), opts.rootRank

        def start(tensor, sync):
            flat = contiguous(tensor)
            values = view(flat)
            call = _native.Call(
                _KIND.reduce, values, values, values.count, calls._operation(operation, tensor), root
            )
            return self._start(call, sync, lambda: put(tensor, flat))

        return self._each(tensors, lambda each: (each, start), opts)

    def _reduced(self, tensor, flat, operation):
        def start(tensor, sync):
            task = calls.all_reduce(flat, operation, self._group, sync)
            return task, lambda: put(tensor, flat)

        return tensor, start

    @in_every_form(AllgatherOptions, 2)
    @recorded("all_gather", 1)
    def allgather(
        self, output_tensors: list[Any], input_tensors: list[torch.Tensor], opts: Any = None
    ) -> Any:
        """output_tensors[i][r] = rank r's input_tensors[i]."""
        works = []
        for outputs, given in zip(output_tensors, input_tensors):
            check_parts("all_gather", given, outputs, self._group.nranks)
            joined = given.new_empty((len(outputs), *given.shape))
            works.append((given, self._gathering(joined, given, lambda o=outputs, j=joined: spread(o, j))))
        return self._each_started(works, [each for outputs in output_tensors for each in outputs], opts)

    def allgather_coalesced(
        self, output_lists: list[list[torch.Tensor]], input_list: list[torch.Tensor], opts: Any = None
    ) -> Any:
        """output_lists[r][i] = rank r's input_list[i]."""
        return self.allgather([list(each) for each in zip(*output_lists)], input_list, opts)

    def _gathering(self, joined, given, then):
        check_whole("all_gather", joined, given, self._group.nranks)

        def start(_, sync):
            mine, every = bytes_of(given), bytes_of(joined)
            call = _native.Call(_KIND.all_gather, view(mine), view(every), mine.numel())

            def finish():
                put(joined, every)
                then()

            if _is_alike():
                every.view(self._group.nranks, -1).copy_(mine)
            return self._start(call, sync, finish)

        return start

    @recorded("all_gather", 1)
    def _allgather_base(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        """output = the ranks' tensors behind each other."""
        return self._each_started([(given, self._gathering(output, given, lambda: None))], [output], opts)

    all_gather_single = _allgather_base

    @recorded("all_gather", 1)
    def allgather_into_tensor_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Any:
        """As _allgather_base, for several."""
        works = [(given, self._gathering(out, given, lambda: None)) for out, given in zip(outputs, inputs)]
        return self._each_started(works, outputs, opts)

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def _reduce_scatter_base(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        """output = this rank's part of the ranks' tensors, which lie behind each other, reduced."""
        return self.reduce_scatter_tensor_coalesced([output], [given], opts)

    reduce_scatter_single = _reduce_scatter_base

    @recorded("reduce_scatter", 1)
    def reduce_scatter_tensor_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Any:
        """As _reduce_scatter_base, for several."""
        operation = _operation(opts, "reduce_scatter")
        works = [(out, self._scattering(out, given, operation)) for out, given in zip(outputs, inputs)]
        return self._each_started(works, outputs, opts)

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    @in_every_form(torch_distributed.ReduceScatterOptions, 2, "op")
    def reduce_scatter(self, outputs: list[torch.Tensor], inputs: list[Any], opts: Any = None) -> Any:
        """outputs[i] = the ranks' inputs[i][this rank] reduced."""
        for output, parts in zip(outputs, inputs):
            check_parts("reduce_scatter", output, parts, self._group.nranks)
        joined = [torch.cat([part.reshape(-1) for part in parts]) for parts in inputs]
        return self.reduce_scatter_tensor_coalesced(outputs, joined, opts)

    def _scattering(self, output, given, operation):
        check_whole("reduce_scatter", given, output, self._group.nranks)

        def start(_, sync):
            share, whole = contiguous(output), contiguous(given)
            target = view(share)
            call = _native.Call(
                _KIND.reduce_scatter,
                view(whole),
                target,
                target.count,
                calls._operation(operation, output),
            )
            return self._start(call, sync, lambda: (put(output, share), whole))

        return start

    @in_every_form(torch_distributed.AllToAllOptions, 4, lists=False)
    @recorded("all_to_all", 1)
    def alltoall_base(
        self,
        output: torch.Tensor,
        given: torch.Tensor,
        output_split_sizes: list[int],
        input_split_sizes: list[int],
        opts: Any = None,
    ) -> Any:
        """Rows of `given` go to the ranks, theirs come into output."""
        ranks = self._group.nranks
        check_rows("all_to_all", output, output_split_sizes, ranks)
        check_rows("all_to_all", given, input_split_sizes, ranks)
        width = [row_bytes(each) for each in (output, given)]
        got = [rows * width[0] for rows in output_split_sizes or evenly(output, ranks)]
        sent = [rows * width[1] for rows in input_split_sizes or evenly(given, ranks)]
        return self._exchange(given, output, got, sent, lambda: None, [output], opts)

    all_to_all_single = alltoall_base

    @recorded("all_to_all", 1)
    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        """outputs[r] = rank r's inputs[this rank]."""
        for each in (outputs, inputs):
            check_count("all_to_all", each, self._group.nranks)
        given = torch.cat([bytes_of(each) for each in inputs])
        got = [each.numel() * each.element_size() for each in outputs]
        taken = torch.empty(sum(got), dtype=torch.uint8)
        sent = [each.numel() * each.element_size() for each in inputs]
        return self._exchange(given, taken, got, sent, lambda: cut(taken, got, outputs), outputs, opts)

    @in_every_form(torch_distributed.GatherOptions, 2, "root")
    @recorded("gather", 1)
    def gather(self, outputs: list[Any], inputs: list[torch.Tensor], opts: Any) -> Any:
        """On opts.rootRank: outputs[0][r] = rank r's inputs[0]."""
        is_root, ranks = opts.rootRank == self.rank(), self._group.nranks
        size = inputs[0].numel() * inputs[0].element_size()
        got = [size if is_root else 0] * ranks
        sent = [size if rank == opts.rootRank else 0 for rank in range(ranks)]
        taken = torch.empty(sum(got), dtype=torch.uint8)
        into = outputs[0] if is_root else []
        if is_root:
            check_parts("gather", inputs[0], into, ranks)
        return self._exchange(inputs[0], taken, got, sent, lambda: cut(taken, got, into), into, opts)

    @in_every_form(torch_distributed.ScatterOptions, 2, "root")
    @recorded("scatter", 1)
    def scatter(self, outputs: list[torch.Tensor], inputs: list[Any], opts: Any) -> Any:
        """outputs[0] = opts.rootRank's inputs[0][this rank]."""
        is_root, ranks = opts.rootRank == self.rank(), self._group.nranks
        size = outputs[0].numel() * outputs[0].element_size()
        if is_root:
            check_parts("scatter", outputs[0], inputs[0], ranks)
        parts = [bytes_of(each) for each in inputs[0]] if is_root else []
        given = torch.cat(parts) if parts else torch.empty(0, dtype=torch.uint8)
        got = [size if rank == opts.rootRank else 0 for rank in range(ranks)]
        return self._exchange(
            given, outputs[0], got, [size if is_root else 0] * ranks, lambda: None, [outputs[0]], opts
        )

    def _exchange(self, given, taken, got, sent, then, results, opts):
        def start(_, sync):
            mine, theirs = bytes_of(given), bytes_of(taken)
            call = _native.Call(_KIND.all_to_all, view(mine), view(theirs), counts=got, send_counts=sent)

            def finish():
                put(taken, theirs)
                then()
                return mine

            return self._start(call, sync, finish)

        return self._each_started([(given, start)], results, opts)

    @in_every_form(torch_distributed.BarrierOptions, 0)
    @recorded("barrier")
    def barrier(self, opts: Any = None) -> Any:
        """Returns when all ranks have called it; opts.timeout: in the place of the group's time."""
        seconds = 0.0 if opts is None else max(opts.timeout.total_seconds(), 0.0)
        if the_world.is_new:
            return done([])
        if not seconds:
            call = _native.Call(_KIND.barrier)
            nothing = torch.empty(0)
            return self._each(
                [nothing], lambda _: (nothing, lambda _, sync: self._start(call, sync, lambda: None)), opts
            )
        try:
            self._barrier_within(seconds)
        except Error as error:
            note(error, the_generations.age, self._group, seconds)
            raise
        return done([])

    def _barrier_within(self, seconds):
        """barrier(), which ends the group where a rank does not come in time, as gloo's does."""
        why = f"a rank of {self._group.name} did not come to a barrier"
        timer = threading.Timer(seconds, self._group.connect(meet_within=seconds).abort, [why])
        timer.daemon = True
        timer.start()
        try:
            calls.barrier(self._group)
        except Error as error:
            raise (Error("timeout", why) if why in error.what else error) from None
        finally:
            timer.cancel()

    # ---- messages ----

    @recorded("send")
    def send(self, tensors: list[torch.Tensor], dstRank: int, tag: int = 0) -> Any:
        """Gives a tensor to a rank of the group."""
        target = self._other(dstRank, tag)
        flat = contiguous(tensors[0])
        return self._message(self._group.mailbox.send(flat, target, tag), lambda: None)

    @recorded("recv")
    def recv(self, tensors: list[torch.Tensor], srcRank: int, tag: int = 0) -> Any:
        """A tensor = what a rank of the group sends with this tag."""
        return self._received(tensors[0], self._other(srcRank, tag), tag)

    @recorded("recvAnySource")
    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> Any:
        """A tensor = what the first rank sends with this tag; the work's source_rank() is its place."""
        return self._received(tensors[0], None, tag)

    def _other(self, place, tag):
        """The job's rank of a place in the group."""
        if place == self._group.rank:
            raise Error("config", f"a message of rank {place} to itself", "a message goes to another rank")
        if tag < 0:
            raise Error("config", f"a message with tag={tag}", "a tag is not negative")
        return self._group.ranks[place]

    def _received(self, tensor, source, tag):
        flat = contiguous(tensor)
        return self._message(self._group.mailbox.post(flat, source, tag), lambda: put(tensor, flat))

    def _message(self, message, then):
        return MessageWork(message, then, self._group.get_group_rank)

    def monitored_barrier(
        self, timeout: datetime.timedelta | None = None, wait_all_ranks: bool = False
    ) -> None:
        """barrier(), which says who did not come within the time. Throws: RuntimeError."""
        within = self._group.call_within if timeout is None else timeout.total_seconds()
        assert within is not None  # torch.distributed gives every group one
        self._monitor.wait(self._group.mailbox, self._group.ranks, self.rank(), within, wait_all_ranks)

    # ---- how calls are started ----

    def _start(self, call, sync, then):
        return (calls.Task() if _is_alike() else calls._call(self._group, sync, call)), then

    def _each(self, tensors: Iterable[torch.Tensor], started: Callable[[Any], Any], opts: Any) -> Any:
        tensors = list(tensors)
        return self._each_started([started(each) for each in tensors], tensors, opts)

    def _each_started(
        self, works: Sequence[tuple[torch.Tensor, Any]], results: list[torch.Tensor], opts: Any
    ) -> Any:
        """One work for calls of (a tensor, a function that starts the call, or makes it)."""
        sync = not _is_beside(opts)
        is_small = sum(tensor.numel() * tensor.element_size() for tensor, _ in works) <= _SMALL_BYTES
        # Within backward all ranks exchange in one order. Elsewhere one may wait for a call that another has
        # begun beside it; and PyTorch's hook of 16 bits asks for a future of done()'s type.
        if not sync and _is_in_backward():
            sync = is_small or any(tensor.dtype == torch.float16 for tensor, _ in works)
        try:
            with torch.no_grad():
                tasks = [start(tensor, sync) for tensor, start in works]
            if sync or is_small and end_soon(tasks):
                for task, then in tasks:
                    end(task, then)
                return done(results)
        except Error as error:
            note(error, the_generations.age, self._group)
            raise
        futures: list[torch.futures.Future] = []
        for task, then in tasks:
            futures.append(torch.futures.Future())
            self._ends.add(task, then, futures[-1])
        return started(futures, results)


def _is_beside(opts):
    return getattr(opts, "asyncOp", True)


def _is_in_backward():
    return torch._C._current_graph_task_id() >= 0


def _is_alike():
    """Whether a process that takes the place of a rank makes its DistributedDataParallel, which the others
    have made long ago: to it they are as it is, until it gets the state of the training from one of them."""
    if not the_world.is_new:
        return False
    frame: FrameType | None = sys._getframe()
    making = torch.nn.parallel.DistributedDataParallel.__init__.__code__
    while frame is not None and frame.f_code is not making:
        frame = frame.f_back
    return frame is not None


def _operation(opts, name):
    """A ReduceOp of ours for that of a call's options."""
    op = torch_distributed.ReduceOp.SUM if opts is None else opts.reduceOp
    for kind in _OPERATIONS:
        if op == getattr(torch_distributed.ReduceOp, kind):
            return getattr(calls.ReduceOp, "PROD" if kind == "PRODUCT" else kind)
    raise Error("config", f"{name} with {op}", f"use {', '.join(_OPERATIONS)}")


_MEETING = 300.0  # seconds, also for groups whose calls have less
# How often groups of a name have been made: torch.distributed starts again after destroy_process_group.
_made: collections.Counter[str] = collections.Counter()


def _create(options: Any, _: Any = None) -> ProcessGroup:
    """A group of backend "fleetrun"."""
    if not options.global_ranks_in_group:
        warn_of_ignite()
    return _made_of(options, "fleetrun")


def _stand_in(options: Any, _: Any = None) -> ProcessGroup:
    """One by the name of gloo."""
    return _made_of(options, "gloo")


def _made_of(options: Any, asked_as: str) -> ProcessGroup:
    """The group that torch.distributed asks for; all of its ranks ask for the same ones in the same order."""
    ranks = list(options.global_ranks_in_group) or list(range(options.group_size))
    rank = options.group_rank
    is_whole = not options.global_ranks_in_group
    if is_whole and the_member() is None:
        _join(options.store, options.group_rank, options.group_size)
    if the_world.rank != ranks[rank] or is_whole and options.group_size != the_world.size:
        raise Error(
            "config",
            f"torch.distributed says that this is rank {ranks[rank]} of {options.group_size}, and it has "
            f"joined as rank {the_world.rank} of {the_world.size} before",
            'call init_process_group("fleetrun") first, or with the rank and size that the environment says',
        )
    return _grouped(ranks, options.timeout, options.group_id, asked_as, options.store)


def _join(store, rank, size):
    """Meets the ranks of init_process_group; where others were met before and let go of, those are left."""
    is_again = the_world.is_joined and (the_world.rank, the_world.size) != (rank, size)
    if is_again and the_world.is_unused:
        the_world.leave()
    if not the_world.is_joined:
        the_world.join(meeting_place_of(store, rank, size, is_again))


def _grouped(ranks, timeout, group_id, asked_as, store):
    """The group of these ranks of the job, this one among them."""
    within = {"call_within": timeout.total_seconds()} if isinstance(timeout, datetime.timedelta) else {}
    name = f"torch/{group_id}/{'-'.join(map(str, ranks))}"
    _made[name] += 1
    name = f"{name}/{_made[name]}"
    # At its end the process leaves the groups that it knows.
    group = the_world.join().groups[name] = Group(the_world, name, ranks, within)
    if the_member() is None:
        # Here, where all are: a first call may be one that others begin much later, or after calls of other
        # groups. Ranks that take places meet in the first call.
        group.connect(meet_within=max(_MEETING, within.get("call_within", 0.0)))
    return ProcessGroup(ranks.index(the_world.rank), len(ranks), group, group_id, asked_as, store)


def register() -> None:
    """Makes "fleetrun" a backend of torch.distributed. Throws: Error(config) where PyTorch is too old."""
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < _OLDEST:
        raise Error(
            "config",
            f'backend "fleetrun" with PyTorch {torch.__version__}, which is older than 2.6',
            "use a newer PyTorch, or backend gloo",
        )
    if "FLEETRUN" not in torch_distributed.Backend._plugins:
        torch_distributed.Backend.register_backend("fleetrun", _create, extended_api=True, devices=["cpu"])
        # PyTorch would attach a recorder of its own, to what a native group has.
        recording: Any = getattr(torch_distributed.distributed_c10d, "_FR_SELF_RECORDING_BACKENDS", set())
        recording.add("fleetrun")
    stand_in_where_asked(_stand_in)
    let_works_wait()
    shut_down_when_destroyed(ProcessGroup)
    meet_over_environment()


register()

"""PyTorch modules whose gradients are the means over all ranks: DistributedDataParallel as PyTorch has it,
and DataParallel with the names of Paddle."""

import contextlib
import hashlib
import importlib

import torch

from fleetrun import _native
from fleetrun._error import Error
from fleetrun._types import Any, Callable, Iterator
from fleetrun.distributed import objects
from fleetrun.distributed._arrays import view
from fleetrun.distributed._untraced import untraced
from fleetrun.distributed._world import the_world
from fleetrun.distributed.parallel.arguments import DdpArguments, check_module
from fleetrun.distributed.parallel.batch_norm import synchronize_batch_norms
from fleetrun.distributed.parallel.ddp_names import ATTRIBUTES, logging_data
from fleetrun.distributed.parallel.hooks import CommunicationHook, hook_of
from fleetrun.distributed.parallel.reducer import Reducer
from fleetrun.distributed.parallel.uneven import JoinHook, UnevenInputs

__all__ = ["DataParallel", "DistributedDataParallel"]

_KIND = _native.CallKind


# The number of the backward that runs, -1 outside of one.
_backward_number = getattr(torch._C, "_current_graph_task_id", lambda: -1)


class DistributedDataParallel(torch.nn.Module):
    """Wraps `module`: forward is the module's; loss.backward() leaves the mean of the ranks' gradients in the
    parameters. For a script that imports it in the place of torch.nn.parallel.DistributedDataParallel, whose
    arguments it takes; a process_group is one of fleetrun.distributed.new_group.

    All ranks start from rank 0's parameters and buffers. Every rank makes the same number of backward passes
    (or says join()); which parameters a pass uses may differ. Buffers (of batch norm) are those of rank 0
    after a backward that averages, and before the forward that comes next. A SyncBatchNorm normalizes over
    all ranks.
    Throws: Error(config) naming the rank whose module differs, Error(network) naming one that is gone,
    Error(data) from backward where ranks have drifted apart, or one raised in its backward.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__()
        if not isinstance(module, torch.nn.Module):
            raise Error("config", f"distributed_model({type(module).__name__}): it is not a torch.nn.Module")
        self.module = module
        self.require_backward_grad_sync = True
        given = {"device_ids": device_ids, "broadcast_buffers": broadcast_buffers, **arguments}
        self._ddp = DdpArguments.of(module, given)
        self._hook: CommunicationHook | None = None
        self._forget_exchange()
        check_module(module, self._parameters_here())
        if self._ddp.group.nranks > 1:
            is_new = the_world.is_new  # the state comes from another rank, in Recoverable.step()
            if not is_new:
                self._check()
            synchronize_batch_norms(module, self._ddp.group)
            if self._ddp.init_sync and not is_new:
                self._broadcast(self._tensors(self._ddp.shares_first_buffers))
            the_world.followers.add(self)

    # ---- what is exchanged ----

    def _forget_exchange(self):
        self._reducer: Any = None
        self._planned: Any = None
        self._communicators: list[Any] = []
        self._uneven: UnevenInputs | None = None
        self._join_hook: JoinHook | None = None
        self._known = {id(parameter) for parameter in self.module.parameters()}
        self._shares_next = True  # the last forward was one whose gradients are averaged

    def drop(self) -> None:
        """The ranks' generation is over: what is exchanged is planned again."""
        if self._reducer is not None:
            self._reducer.close()
        self._forget_exchange()

    def _is_left_out(self, name):
        return name in getattr(self.module, "_ddp_params_and_buffers_to_ignore", ())

    def _parameters_here(self):
        return [
            (name, value)
            for name, value in self.module.named_parameters()
            if not self._is_left_out(name) and not getattr(value, "_ddp_ignored", False)
        ]

    def _buffers_here(self):
        return [value for name, value in self.module.named_buffers() if not self._is_left_out(name)]

    def _tensors(self, with_buffers):
        parameters = [value for _, value in self._parameters_here()]
        return parameters + (self._buffers_here() if with_buffers else [])

    def _check(self):
        """Throws: Error(config) when a rank has other parameters."""
        shapes = [
            (name, tuple(value.shape), str(value.dtype), value.device.type)
            for name, value in [*self._parameters_here(), *self.module.named_buffers()]
            if not self._is_left_out(name)
        ]
        digests: list[Any] = []
        mine = (len(shapes), hashlib.sha256(repr(shapes).encode()).hexdigest())
        objects.all_gather_object(digests, mine, self._ddp.group)
        for rank, digest in zip(self._ddp.group.ranks, digests):
            if digest != digests[0]:
                raise Error(
                    "config",
                    f"the model of rank {rank} is not that of rank {self._ddp.group.ranks[0]}: {digest[0]} "
                    f"and {digests[0][0]} parameters and buffers, or others of the same number",
                    "make the same model on every rank",
                )

    def _prepare(self):
        """The reducer of the parameters that want gradients now."""
        wanting = [each for each in self._parameters_here() if each[1].requires_grad]
        planned = [(id(value), value.dtype, value.device) for _, value in wanting]
        if planned == self._planned:
            return
        new = [name for name, value in wanting if id(value) not in self._known]
        if new:
            raise Error(
                "config",
                f"'{new[0]}' was not a parameter of the module when it was wrapped: ranks may have other "
                "values of it",
                "change the module first, then call fleet.distributed_model",
            )
        if self._reducer is not None:
            self._reducer.close()
        self._planned, self._reducer = planned, None
        # Above this module: what the job's strategy says, asked for when it has been given.
        fleet = importlib.import_module("fleetrun.distributed.fleet._fleet")
        options = fleet.the_fleet._parallel_options()
        if not wanting or options.local_steps is not None:
            return
        check_module(self.module, wanting)
        rows = {
            f"{name}.weight" if name else "weight"
            for name, module in self.module.named_modules()
            if getattr(module, "sparse", False)
        }
        self._communicators = self._communicators or self._ddp.group.new_communicators(
            "gradients", options.communicators, options.communicator_options
        )
        self._reducer = Reducer(
            wanting,
            rows,
            self._communicators,
            options,
            self._ddp.gradient_as_bucket_view,
            self._hook,
            self._share_after,
        )

    def _share_buffers(self):
        """Everybody's are those of rank 0, or with join() of a rank that still has batches."""
        if self._ddp.broadcast_buffers:
            self._broadcast(self._buffers_here())

    def _share_before(self, averages):
        """A forward begins. Those behind the first one of no_sync(), and the one that ends it, go on with the
        buffers that the rank has made, as with PyTorch's."""
        if self._shares_next:
            self._share_buffers()
        self._shares_next = averages

    def _share_after(self):
        """With join() each rank goes on with its own: whose they are next shows who has a batch then."""
        if self._uneven is None:
            self._share_buffers()

    def _broadcast(self, tensors):
        root = self._uneven.root if self._uneven is not None else 0
        with torch.no_grad():
            _broadcast(self._ddp.group.communicator, tensors, root)

    # ---- a step ----

    @untraced(recursive=False)
    def forward(self, *arguments: Any, **named: Any) -> Any:
        """The module's."""
        self._begin()
        if self._ddp.device is not None:
            arguments, named = _moved((arguments, named), self._ddp.device)
        averages = self.require_backward_grad_sync
        outputs = self.module(*arguments, **named)
        self._follow(outputs, averages)
        return outputs

    @untraced
    def _follow(self, outputs, averages):
        if self._reducer is not None and torch.is_grad_enabled() and _backward_number() < 0:
            self._reducer.follow(outputs, averages)

    @untraced
    def _begin(self):
        # A forward within a backward computes a part of the step again (torch.utils.checkpoint).
        if self._ddp.group.nranks == 1 or _backward_number() >= 0:
            return
        if self._reducer is not None:
            self._reducer.settle()
        if not torch.is_grad_enabled():
            return
        if self._join_hook is not None and self._join_config.enable:
            work = torch.distributed.algorithms.Join.notify_join_context(self)
            if work is not None:
                work.wait()
            self._join_hook.begin()
        self._prepare()
        if self._uneven is not None:
            self._uneven.meet(True, self.require_backward_grad_sync)
        if self._reducer is not None:
            self._reducer.arm(self.require_backward_grad_sync)
            if self._uneven is not None:
                self._reducer.set_scale(self._uneven.scale)
            self._share_before(self.require_backward_grad_sync)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of what runs forward and backward within are added up on each rank alone; the first
        backward after it averages the sums."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextlib.contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:
        """For ranks with different numbers of batches: who has none left takes part in the others' steps with
        zeros, until nobody has one; then all have the parameters of a rank that had batches to the end.

        divide_by_initial_world_size: means are over all ranks, else over those that have a batch.
        throw_on_early_termination: RuntimeError on all ranks as soon as one has no batch left."""
        if not enable or self._ddp.group.nranks == 1:
            yield
            return
        self._begin_uneven(divide_by_initial_world_size, throw_on_early_termination)
        try:
            yield
            while self._follow_others():
                pass
            self._share_end()
        finally:
            self._end_uneven()

    def _begin_uneven(self, divides_by_all, is_strict):
        if self._uneven is not None or self._ddp.group.nranks == 1:
            return
        with torch.enable_grad():
            self._prepare()
        self._uneven = UnevenInputs(self._ddp.group.communicator, divides_by_all, is_strict)

    def _follow_others(self):
        """Takes part in a step of those that have a batch. Whether anybody has."""
        assert self._uneven is not None
        has_any = self._uneven.meet(False, False)
        if has_any and self._reducer is not None:
            self._share_before(self._uneven.averages)
            if self._uneven.averages:
                self._reducer.shadow()
        return has_any

    def _share_end(self):
        self._broadcast(self._tensors(self._ddp.broadcast_buffers))

    def _end_uneven(self):
        self._uneven = None
        if self._reducer is not None:
            self._reducer.set_scale(1.0)

    # ---- what torch.distributed.algorithms.Join([model]) asks of a model ----

    def join_hook(self, divide_by_initial_world_size: bool = True, **_: Any) -> JoinHook:
        """What a rank without batches does. Throws: Error(config) where torch.distributed has not the ranks
        of the model."""
        self._join_hook = JoinHook(self, self._ddp.group, divide_by_initial_world_size)
        return self._join_hook

    @property
    def join_device(self) -> torch.device:
        """Where Join counts who has batches."""
        return torch.device("cpu")

    @property
    def join_process_group(self) -> Any:
        """The ranks that Join counts."""
        return torch.distributed.group.WORLD

    def register_comm_hook(self, state: object, hook: Callable[[Any, Any], Any]) -> None:
        """As torch.nn.parallel.DistributedDataParallel.register_comm_hook: distributed/parallel/hooks.py."""
        if self._hook is not None:
            raise RuntimeError("register_comm_hook was called before: a model has one communication hook")
        self._hook = hook_of(state, hook)
        self._planned = None

    def _register_builtin_comm_hook(self, kind: Any) -> None:
        """register_comm_hook() with PyTorch's hook of this torch.distributed.BuiltinCommHookType."""
        hooks = importlib.import_module("torch.distributed.algorithms.ddp_comm_hooks.default_hooks")
        names = {"ALLREDUCE": "allreduce_hook", "FP16_COMPRESS": "fp16_compress_hook"}
        if kind.name not in names:
            raise ValueError(f"communication hook {kind}: there are {' and '.join(names)}")
        self.register_comm_hook(None, getattr(hooks, names[kind.name]))

    def _set_static_graph(self) -> None:
        """Nothing: which parameters a backward uses may change. For scripts that say so after wrapping."""

    # ---- what PyTorch's tells ----

    def __getattr__(self, name: str) -> Any:
        return ATTRIBUTES[name](self) if name in ATTRIBUTES else super().__getattr__(name)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """How the model was made; no times."""
        return logging_data(self)

    def _set_ddp_runtime_logging_sample_rate(self, sample_rate: int) -> None:
        """Nothing: no times are logged."""

    # ---- copies ----

    def __getstate__(self) -> dict[str, Any]:
        own = {
            "_hook", "_reducer", "_planned", "_communicators", "_uneven", "_known", "_join_hook",
            "_join_config",
        }  # fmt: skip
        state = {name: value for name, value in self.__dict__.items() if name not in own}
        made = self._ddp
        state["_ddp"] = {**vars(made), "group": made.group.id}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy has no communication hook."""
        super().__setstate__(state)
        group = the_world.join().groups[state["_ddp"]["group"]]
        self._ddp = DdpArguments(**{**state["_ddp"], "group": group})
        self._hook = None
        self._forget_exchange()
        the_world.followers.add(self)


class DataParallel(DistributedDataParallel):
    """The same with Paddle's names: state_dict(), parameters() and so on are the module's own, without a
    prefix; its attributes are there too."""

    def scale_loss(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss itself: gradients are averaged, not added up. For scripts that call it."""
        return loss

    def apply_collective_grads(self) -> None:
        """Nothing: backward has averaged. For scripts that call it."""

    def clear_gradients(self) -> None:
        """No parameter has a gradient any more."""
        self.module.zero_grad()

    def __getattr__(self, name: str) -> Any:
        try:
            return torch.nn.Module.__getattr__(self, name)
        except AttributeError:
            module = torch.nn.Module.__getattr__(self, "module")
            # The module's come first: only what it does not have is what PyTorch's tells.
            if name in ATTRIBUTES and not hasattr(module, name):
                return ATTRIBUTES[name](self)
            return getattr(module, name)

    def state_dict(self, *arguments: Any, **named: Any) -> Any:
        """The module's."""
        return self.module.state_dict(*arguments, **named)

    def load_state_dict(self, state_dict: Any, *arguments: Any, **named: Any) -> Any:
        """The module's; also what DistributedDataParallel saved, whose names begin with "module.". Every rank
        loads the same."""
        if state_dict and all(name.startswith("module.") for name in state_dict):
            own = self.module.state_dict()
            if not any(name in own for name in state_dict):
                state_dict = {name.removeprefix("module."): value for name, value in state_dict.items()}
        return self.module.load_state_dict(state_dict, *arguments, **named)

    def _load_from_state_dict(self, state_dict, prefix, *arguments):
        # As a part of another module: names are those that state_dict() gives.
        for name in [name for name in state_dict if name.startswith(prefix)]:
            state_dict[f"{prefix}module.{name.removeprefix(prefix)}"] = state_dict.pop(name)
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    def named_parameters(self, *arguments: Any, **named: Any) -> Iterator[Any]:
        """The module's."""
        return self.module.named_parameters(*arguments, **named)

    def named_buffers(self, *arguments: Any, **named: Any) -> Iterator[Any]:
        """The module's."""
        return self.module.named_buffers(*arguments, **named)


def _moved(value, device):
    """Tensors within tuples, lists and dicts on the device."""
    if isinstance(value, torch.Tensor):
        return value.to(device, non_blocking=True)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_moved(each, device) for each in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_moved(each, device) for each in value)
    if isinstance(value, dict):
        return type(value)((name, _moved(each, device)) for name, each in value.items())
    return value


def _broadcast(communicator, tensors, root=0):
    """The root's values, one call for each type and device; as bytes, so of any type."""
    by_type: dict[Any, Any] = {}
    for tensor in tensors:
        by_type.setdefault((tensor.dtype, tensor.device), []).append(tensor)
    for parts in by_type.values():
        flat = torch.cat([part.detach().reshape(-1) for part in parts])
        if not flat.numel():
            continue
        values = view(flat.view(torch.uint8))
        communicator.run(_native.Call(_KIND.broadcast, values, values, values.count, root=root))
        start = 0
        for part in parts:
            # Not as a change that autograd counts: a forward before this one may belong to the backward that
            # comes. That of a batch norm has kept the running mean, without a use for its value.
            part.data.copy_(flat[start : start + part.numel()].view(part.shape))
            start += part.numel()

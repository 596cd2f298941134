"""DataParallel: a PyTorch module whose gradients are the means over all ranks."""

import contextlib
import hashlib

import torch

from fleetrun import _native
from fleetrun._error import Error
from fleetrun._types import Any, Callable, Iterator
from fleetrun.distributed import objects
from fleetrun.distributed._arrays import view
from fleetrun.distributed._world import the_world
from fleetrun.distributed.parallel.options import ParallelOptions
from fleetrun.distributed.parallel.reducer import Reducer

__all__ = ["DataParallel"]

_KIND = _native.CallKind


class DataParallel(torch.nn.Module):
    """Wraps `module`: forward is the module's; loss.backward() leaves the mean of the ranks' gradients in the
    parameters.

    All ranks start from rank 0's parameters and buffers. Every rank makes the same number of backward passes;
    which parameters a pass uses may differ. Buffers (of batch norm) are those of rank 0 before each forward
    of training. state_dict(), parameters() and so on are the module's own, without a prefix; its attributes
    are there too. options(): what the strategy says, asked for by the first forward of training.
    Throws: Error(config) naming the rank whose module differs, Error(network) naming one that is gone.
    """

    def __init__(self, module: torch.nn.Module, options: Callable[[], ParallelOptions]) -> None:
        super().__init__()
        if not isinstance(module, torch.nn.Module):
            raise Error("config", f"distributed_model({type(module).__name__}): it is not a torch.nn.Module")
        self.module = module
        self._options = options
        self._reducer: Any = None
        self._is_prepared = the_world.size == 1
        self._is_synchronizing = True
        if the_world.size > 1:
            self._check()
            self._start_alike()

    def _check(self):
        """Throws: Error(config) when a rank has other parameters."""
        shapes = [
            (name, tuple(value.shape), str(value.dtype), value.device.type)
            for name, value in self.module.state_dict().items()
            if isinstance(value, torch.Tensor)
        ]
        digests: list[Any] = []
        objects.all_gather_object(digests, (len(shapes), hashlib.sha256(repr(shapes).encode()).hexdigest()))
        for rank, digest in enumerate(digests):
            if digest != digests[0]:
                raise Error(
                    "config",
                    f"the model of rank {rank} is not that of rank 0: {digest[0]} and {digests[0][0]} "
                    "parameters and buffers, or others of the same number",
                    "make the same model on every rank",
                )

    def _start_alike(self):
        with torch.no_grad():
            _broadcast(
                the_world.default_group.communicator, [*self.module.parameters(), *self.module.buffers()]
            )

    def _make_reducer(self):
        parameters = [
            (name, parameter) for name, parameter in self.module.named_parameters() if parameter.requires_grad
        ]
        options = self._options()
        if not parameters or options.local_steps is not None:
            return
        devices = sorted({str(parameter.device) for _, parameter in parameters})
        if len(devices) > 1:
            raise Error(
                "config",
                f"the module's parameters lie on {' and '.join(devices)}",
                "put the module on one device",
            )
        rows = {
            f"{name}.weight" if name else "weight"
            for name, module in self.module.named_modules()
            if getattr(module, "sparse", False)
        }
        communicators = the_world.new_communicators(
            "gradients", options.communicators, options.communicator_options
        )
        self._reducer = Reducer(parameters, rows, communicators, options)

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """The module's."""
        if not self._is_prepared and self.module.training and torch.is_grad_enabled():
            self._is_prepared = True
            self._make_reducer()
        if self._reducer is not None and self.module.training and torch.is_grad_enabled():
            self._reducer.is_enabled = self._is_synchronizing
            buffers = list(self.module.buffers())
            if buffers and self._is_synchronizing:
                with torch.no_grad():
                    _broadcast(the_world.default_group.communicator, buffers)
        return self.module(*arguments, **named)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of what runs forward and backward within are added up on each rank alone; the first
        backward after it averages the sums."""
        before, self._is_synchronizing = self._is_synchronizing, False
        try:
            yield
        finally:
            self._is_synchronizing = before

    def scale_loss(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss itself: gradients are averaged, not added up. For scripts that call it."""
        return loss

    def apply_collective_grads(self) -> None:
        """Nothing: backward has averaged. For scripts that call it."""

    def clear_gradients(self) -> None:
        """No parameter has a gradient any more."""
        self.module.zero_grad()

    # ---- the module's own ----

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)

    def state_dict(self, *arguments: Any, **named: Any) -> Any:
        """The module's."""
        return self.module.state_dict(*arguments, **named)

    def load_state_dict(self, *arguments: Any, **named: Any) -> Any:
        """The module's. Every rank loads the same."""
        return self.module.load_state_dict(*arguments, **named)

    def named_parameters(self, *arguments: Any, **named: Any) -> Iterator[Any]:
        """The module's."""
        return self.module.named_parameters(*arguments, **named)

    def named_buffers(self, *arguments: Any, **named: Any) -> Iterator[Any]:
        """The module's."""
        return self.module.named_buffers(*arguments, **named)


def _broadcast(communicator, tensors):
    """Rank 0's values, one call for each type and device."""
    by_type: dict[Any, Any] = {}
    for tensor in tensors:
        by_type.setdefault((tensor.dtype, tensor.device), []).append(tensor)
    for parts in by_type.values():
        flat = torch.cat([part.detach().reshape(-1) for part in parts])
        values = view(flat)
        communicator.run(_native.Call(_KIND.broadcast, values, values, values.count))
        start = 0
        for part in parts:
            part.copy_(flat[start : start + part.numel()].view(part.shape))
            start += part.numel()

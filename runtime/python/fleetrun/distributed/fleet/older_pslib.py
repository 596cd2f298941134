"""paddle.fluid.incubate.fleet.parameter_server.pslib: Baidu's own servers in Paddle 1.x, on today's Fleet."""

from __future__ import annotations

from fleetrun import _lazy
from fleetrun._arguments import warn_once
from fleetrun._types import Any
from fleetrun.distributed.fleet._fleet import the_fleet
from fleetrun.distributed.fleet._strategy import DistributedStrategy
from fleetrun.distributed.fleet._transpiler import TranspilerFleet

__all__ = ["DownpourOptimizer", "fleet", "PSLib"]

# Keys of a strategy that today's has as well.
_TODAYS = ("adam_d2sum", "fs_client_param")


class DownpourOptimizer:
    """What fleet.distributed_optimizer() gives: minimize() as pslib has it."""

    def __init__(self, optimizer: Any, strategy: dict[str, Any] | None = None) -> None:
        self._optimizer = optimizer
        made = DistributedStrategy()
        made.a_sync = True
        for key, value in (strategy or {}).items():
            if key in _TODAYS:
                setattr(made, key, value)
            elif value:
                warn_once(f"pslib.{key}", f"pslib's strategy[{key!r}] = {value!r} has no effect")
        the_fleet.distributed_optimizer(optimizer, made)

    def minimize(
        self,
        losses: Any,
        scopes: Any = None,
        startup_programs: Any = None,
        parameter_list: Any = None,
        no_grad_set: Any = None,
        program_mode: str = "all_reduce",
    ) -> Any:
        """fleet.minimize of one loss, or of a list of one. scopes, program_mode: accepted; a run says its
        scope."""
        return the_fleet.minimize(losses, startup_programs, parameter_list, no_grad_set)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_optimizer"], name)


class PSLib(TranspilerFleet):
    """Asynchronous training on servers; everything else is paddle.distributed.fleet's."""

    def distributed_optimizer(self, optimizer: Any, strategy: dict[str, Any] | None = None) -> Any:
        """Today's, asynchronous. strategy: a dict; what of it is not today's has no effect, which is said
        once for each key."""
        return DownpourOptimizer(optimizer, strategy)

    def shrink_sparse_table(self) -> None:
        """fleet.shrink."""
        the_fleet.shrink()

    def save_model(self, model_dir: str, **kwargs: Any) -> None:
        """fleet.save_persistables to model_dir."""
        the_fleet.save_persistables(None, model_dir, mode=int(kwargs.get("mode", 0)))


fleet = PSLib()

__getattr__, __dir__ = _lazy.attach(
    __name__, owner="paddle.incubate.distributed.fleet.parameter_server.pslib"
)

"""paddle.fluid.incubate.fleet.parameter_server.pslib: Baidu's own servers in Paddle 1.x, on today's Fleet."""

from __future__ import annotations

from fleetrun import _lazy
from fleetrun._arguments import warn_once
from fleetrun._error import Error
from fleetrun._types import Any
from fleetrun.distributed.fleet._fleet import the_fleet
from fleetrun.distributed.fleet._strategy import DistributedStrategy
from fleetrun.distributed.fleet._transpiler import TranspilerFleet

__all__ = ["DownpourOptimizer", "fleet", "PSLib"]

# Keys of a strategy that today's has as well.
_TODAYS = ("adam_d2sum", "fs_client_param")


_CHECKED = ("scale_datanorm", "datanorm_table")
_DECAY = 0.999999  # Of the sums of data_norm (ps/base/table_config.h).


def _check_data_norm(strategy):
    """Throws: Error(config) for a setting of data_norm that would change the numbers."""
    scale = strategy.get("scale_datanorm", -1)
    if scale is not None and scale >= 0:
        raise Error(
            "config",
            f"pslib's strategy['scale_datanorm'] = {scale}: what a batch adds to sums is not scaled",
            "leave it out: data_norm(epsilon=…) adds to the squares",
        )
    table = strategy.get("datanorm_table") or {}
    decay = table.get("datanorm_decay_rate", _DECAY)
    operation = table.get("datanorm_operation", "summary")
    if decay != _DECAY or operation != "summary":
        raise Error(
            "config",
            f"pslib's strategy['datanorm_table'] has datanorm_operation={operation!r}, "
            f"datanorm_decay_rate={decay}",
            f"servers keep data_norm's sums by 'summary', with {_DECAY}",
        )


class DownpourOptimizer:
    """What fleet.distributed_optimizer() gives: minimize() as pslib has it."""

    def __init__(self, optimizer: Any, strategy: dict[str, Any] | None = None) -> None:
        self._optimizer = optimizer
        made = DistributedStrategy()
        made.a_sync = True
        _check_data_norm(strategy or {})
        for key, value in (strategy or {}).items():
            if key in _TODAYS:
                setattr(made, key, value)
            elif value and key not in _CHECKED:
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

    def init_server(self, model_dir: Any = None, **kwargs: Any) -> None:
        """On a server today's. On trainers, which call it in pslib: once all are there, the first one loads
        the model into the servers."""
        if not the_fleet.is_worker():
            the_fleet.init_server(model_dir, **kwargs)
            return
        the_fleet.barrier_worker()
        if model_dir and the_fleet.is_first_worker():
            the_fleet.load_model(model_dir, kwargs.get("mode", 0))
        the_fleet.barrier_worker()

    def set_pull_local_thread_num(self, thread_num: int) -> None:
        """Accepted: a trainer's threads pull for themselves."""

    def print_table_stat(self, table_id: int) -> None:
        """Accepted with a warning."""
        warn_once(
            "print_table_stat",
            f"fleet.print_table_stat({table_id}) has no effect: `fleetrun ps stat` shows the tables",
        )

    def confirm(self) -> None:
        """Accepted with a warning: updates stay as they come."""
        warn_once("pslib.confirm", "fleet.confirm has no effect: updates stay as they come")

    def revert(self) -> None:
        """Refused. Throws: Error(config)."""
        raise Error(
            "config",
            "fleet.revert: updates stay as they come, and are not taken back",
            "save before a pass (fleet.save_model), and load that (fleet.load_model)",
        )

    def clear_model(self) -> None:
        """Refused. Throws: Error(config)."""
        raise Error(
            "config",
            "fleet.clear_model: no call empties tables that are trained",
            "start the servers anew, without a model to load (fleet.init_server())",
        )

    def clear_one_table(self, table_id: int) -> None:
        """Refused. Throws: Error(config)."""
        self.clear_model()

    def shrink_dense_table(
        self, decay: float, emb_dim: int = 11, scope: Any = None, table_id: int | None = None
    ) -> None:
        """Refused. Throws: Error(config)."""
        raise Error(
            "config",
            f"fleet.shrink_dense_table({decay}): data_norm's sums are not multiplied from outside",
            f"leave it out: each push multiplies them by {_DECAY}",
        )

    def load_one_table(self, table_id: int, model_path: str, **kwargs: Any) -> None:
        """Refused. Throws: Error(config)."""
        the_fleet.load_one_table(table_id, model_path, kwargs.get("mode", 0))

    def save_one_table(self, table_id: int, model_dir: str, **kwargs: Any) -> None:
        """save_model(), with a warning: a save holds all tables at one moment."""
        the_fleet.save_one_table(table_id, model_dir, int(kwargs.get("mode", 0)))

    def save_cache_model(self, executor: Any, dirname: str, main_program: Any = None, **kwargs: Any) -> int:
        """fleet.save_cache_model."""
        return the_fleet.save_cache_model(dirname, **kwargs)

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

"""The older strategies: one class for each mode, made by DistributedStrategyFactory. Source: document 000."""

import os
from typing import Any

from fleetrun._arguments import warn_once
from fleetrun._error import Error
from fleetrun.distributed.fleet._configs import (
    BuildStrategy,
    DistributeTranspilerConfig,
    ExecutionStrategy,
    ServerRuntimeConfig,
    TrainerRuntimeConfig,
)
from fleetrun.distributed.fleet._exchange import Exchange


class TranspilerStrategy:
    """A mode with its five configuration objects. Each has a getter, and a setter that takes an object or a
    dict: program, trainer_runtime, server_runtime, execute and build."""

    mode = ""
    _flags: dict[Any, Any] = {}

    def __init__(self) -> None:
        self._program_config = DistributeTranspilerConfig()
        self._trainer_runtime_config = TrainerRuntimeConfig()
        self._server_runtime_config = ServerRuntimeConfig()
        self._execute_strategy = ExecutionStrategy()
        self._build_strategy = BuildStrategy()
        self._execute_strategy.num_threads = int(os.environ.get("CPU_NUM", "1"))
        self.debug_opt: dict[str, Any] = {}
        self._execute_strategy.use_thread_barrier = self.mode in ("sync", "half_async")
        self._build_strategy.async_mode = True
        self._take_mode()

    def _take_mode(self):
        self._program_config.take_mode({"sync_mode": False, "runtime_split_send_recv": True, **self._flags})

    def set_debug_opt(self, opt_info: dict[str, Any]) -> None:
        """Kept, with a warning: nothing is dumped."""
        warn_once(
            "debug_opt",
            f"set_debug_opt({opt_info!r}) has no effect: nothing is dumped; fetch_list shows values",
        )
        self.debug_opt = dict(opt_info)

    def get_debug_opt(self) -> dict[str, Any]:
        """What set_debug_opt() was given."""
        return dict(self.debug_opt)

    def get_program_config(self) -> DistributeTranspilerConfig:
        """The DistributeTranspilerConfig of this strategy; changes to it count."""
        return self._program_config

    def set_program_config(self, config: Any) -> None:
        """Takes a DistributeTranspilerConfig, or a dict with some of its keys."""
        self._program_config.update(config)
        mode = self._program_config.mode
        if mode != "pserver":
            raise Error(
                "config",
                f"DistributeTranspilerConfig.mode = {mode!r} of a strategy: parameters lie on servers",
                "give that config to fluid.DistributeTranspiler, or use fleet.init(is_collective=True)",
            )
        self._take_mode()

    def get_trainer_runtime_config(self) -> TrainerRuntimeConfig:
        """The TrainerRuntimeConfig of this strategy; changes to it count."""
        return self._trainer_runtime_config

    def set_trainer_runtime_config(self, config: Any) -> None:
        """Takes a TrainerRuntimeConfig, or a dict with some of its keys."""
        self._trainer_runtime_config.update(config)

    def get_server_runtime_config(self) -> ServerRuntimeConfig:
        """The ServerRuntimeConfig of this strategy."""
        return self._server_runtime_config

    def set_server_runtime_config(self, config: Any) -> None:
        """Takes a ServerRuntimeConfig, or a dict with some of its keys."""
        self._server_runtime_config.update(config)

    def get_execute_strategy(self) -> ExecutionStrategy:
        """The ExecutionStrategy of this strategy."""
        return self._execute_strategy

    def set_execute_strategy(self, config: Any) -> None:
        """Takes an ExecutionStrategy, or a dict with some of its keys."""
        self._execute_strategy.update(config)

    def get_build_strategy(self) -> BuildStrategy:
        """The BuildStrategy of this strategy."""
        return self._build_strategy

    def set_build_strategy(self, config: Any) -> None:
        """Takes a BuildStrategy, or a dict with some of its keys."""
        self._build_strategy.update(config)

    @property
    def exchange(self) -> Exchange:
        """The mode and its settings."""
        program, trainer = self._program_config, self._trainer_runtime_config
        independent = trainer.number("independent_recv_thread") != 0
        return Exchange(
            self.mode,
            geo_steps=program.geo_sgd_need_push_nums,
            merged=trainer.number("max_merge_var_num"),
            waiting=trainer.number("send_queue_size"),
            pull_every=trainer.number("min_send_grad_num_before_recv") if independent else 1,
            min_block=program.min_block_size if program.slice_var_up else None,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.exchange!r})"


class SyncStrategy(TranspilerStrategy):
    """The gradients of one step of all trainers are averaged."""

    mode = "sync"
    _flags = {"half_async": True, "completely_not_async": True}


class HalfAsyncStrategy(TranspilerStrategy):
    """The threads of one trainer step together; trainers do not wait for each other."""

    mode = "half_async"
    _flags = {"half_async": True}


class AsyncStrategy(TranspilerStrategy):
    """Each gradient is applied when it arrives."""

    mode = "async"


class GeoStrategy(TranspilerStrategy):
    """Trainers train copies of their own, and exchange differences every `update_frequency` batches."""

    mode = "geo"
    _flags = {"geo_sgd_mode": True}

    def __init__(self, update_frequency: int = 100) -> None:
        super().__init__()
        self._program_config.geo_sgd_need_push_nums = update_frequency
        steps = self._program_config.geo_sgd_need_push_nums
        self._trainer_runtime_config.update(
            {"communicator_send_queue_size": steps, "communicator_max_merge_var_num": steps}
        )


class StrategyFactory:
    """Makes strategies, with the default frequency of Paddle 2.6."""

    @staticmethod
    def create_sync_strategy() -> SyncStrategy:
        """Synchronous training."""
        return SyncStrategy()

    @staticmethod
    def create_half_async_strategy() -> HalfAsyncStrategy:
        """Half-asynchronous training."""
        return HalfAsyncStrategy()

    @staticmethod
    def create_async_strategy() -> AsyncStrategy:
        """Asynchronous training."""
        return AsyncStrategy()

    @staticmethod
    def create_geo_strategy(update_frequency: int = 100) -> GeoStrategy:
        """Geo training: differences are exchanged every `update_frequency` batches of a trainer."""
        return GeoStrategy(update_frequency)


class DistributedStrategyFactory(StrategyFactory):
    """Makes strategies, with the frequency that document 000 gives."""

    @staticmethod
    def create_geo_strategy(update_frequency: int = 400) -> GeoStrategy:
        """Geo training: differences are exchanged every `update_frequency` batches of a trainer."""
        return GeoStrategy(update_frequency)


def strategy_of(config: DistributeTranspilerConfig) -> TranspilerStrategy:
    """The strategy whose mode the flags of a config name, as Paddle 2.6.2 reads them."""
    made: TranspilerStrategy
    if config.sync_mode:
        made = SyncStrategy()
    elif config.runtime_split_send_recv and config.geo_sgd_mode:
        made = GeoStrategy(config.geo_sgd_need_push_nums)
    elif config.runtime_split_send_recv and not config.half_async:
        made = AsyncStrategy()
    else:
        made = HalfAsyncStrategy()
    made.set_program_config(
        {name: value for name, value in config.values().items() if name not in config._MODE_FLAGS}
    )
    return made


def exchange_of(strategy: Any) -> Exchange:
    """The Exchange of any kind of strategy. Throws: Error(config) for anything else."""
    if isinstance(strategy, DistributeTranspilerConfig):
        strategy = strategy_of(strategy)
    try:
        return strategy.exchange
    except AttributeError:
        raise Error(
            "config",
            f"{strategy!r} is not a strategy",
            "use fleet.DistributedStrategy() or DistributedStrategyFactory.create_*_strategy()",
        ) from None

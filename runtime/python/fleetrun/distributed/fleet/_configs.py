"""The configuration objects of the older strategies: their keys, which of them have an effect, and which do
not.

Each is an object with Paddle's attributes and defaults; a dict of the same keys does as well (update()). A
key that Paddle has not is refused by name, and so is a value that would mean something else than what is
done.
"""

from __future__ import annotations

import os
from typing import Any

from fleetrun._arguments import whole_number
from fleetrun._error import Error
from fleetrun._lazy import MissingName, missing


class Config:
    """Attributes that are known, with their defaults. `_KEPT`: those that only take their default."""

    _DEFAULTS: dict[str, Any] = {}
    _KEPT: dict[Any, Any] = {}

    def __init__(self) -> None:
        object.__setattr__(
            self, "_values", {**self._DEFAULTS, **{name: value for name, (value, _) in self._KEPT.items()}}
        )

    def __getattr__(self, name: str) -> Any:
        values = object.__getattribute__(self, "__dict__").get("_values", {})
        if name not in values:
            raise MissingName(type(self).__name__, name, lambda: values)
        return values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._values:
            raise Error("config", missing(type(self).__name__, name, self._values))
        if name in self._KEPT and value != self._KEPT[name][0]:
            default, reason = self._KEPT[name]
            raise Error(
                "config", f"{type(self).__name__}.{name} = {value!r}: {reason}", f"leave it at {default!r}"
            )
        self._values[name] = self._checked(name, value)

    def _checked(self, name, value):
        return value

    def update(self, config: Config | dict[str, Any]) -> None:
        """Takes over `config`, an object of this class or a dict with some of its keys. Throws:
        Error(config)."""
        if isinstance(config, type(self)):
            object.__setattr__(self, "_values", config._values)
        elif isinstance(config, dict):
            for name, value in config.items():
                setattr(self, name, value)
        else:
            raise Error("config", f"{config!r} is neither a dict nor a {type(self).__name__}")

    def values(self) -> dict[str, Any]:
        """{key: value} of all keys."""
        return dict(self._values)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._values})

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in sorted(self._values.items()))
        return f"{type(self).__name__}({fields})"


_BY_FACTORY = "the factory's call chooses the mode"
_NOT_COLLECTIVE = "it is for collective training"


class DistributeTranspilerConfig(Config):
    """How a program's parameters are laid out over servers.

    min_block_size: a dense parameter is split into blocks of at least so many values; a smaller one lies on
    one server.
    slice_var_up: False never splits. geo_sgd_need_push_nums: geo; batches between two exchanges.
    split_method,
    wait_port, print_log: no effect (whole parameters go to servers by a hash of their number; trainers always
    wait for servers; there is nothing to print).
    mode: "nccl2" or "collective": trainers without servers, which fluid.DistributeTranspiler alone knows;
    they average gradients, with collective_mode="local_sgd" parameters. nccl_comm_num,
    use_hierarchical_allreduce and hierarchical_allreduce_inter_nranks say how (DistributedStrategy).
    sync_mode, runtime_split_send_recv, half_async, geo_sgd_mode: of an object that is itself given to
    fleet.distributed_optimizer, the mode; that of a strategy has its own.
    """

    _DEFAULTS = {
        "slice_var_up": True,
        "split_method": None,
        "min_block_size": 8192,
        "print_log": False,
        "wait_port": True,
        "geo_sgd_need_push_nums": 100,
        "mode": "pserver",
        "collective_mode": None,
        "nccl_comm_num": 1,
        "use_hierarchical_allreduce": False,
        "hierarchical_allreduce_inter_nranks": 0,
    }
    _KEPT = {"enable_dc_asgd": (False, "delayed gradients are not compensated")}
    _CHOICES = {
        "mode": ("pserver", "nccl2", "collective"),
        "collective_mode": (None, "grad_allreduce", "local_sgd"),
    }
    # A strategy sets those of its object, and nobody else does.
    _MODE_FLAGS = {
        "sync_mode": True,
        "half_async": False,
        "completely_not_async": False,
        "geo_sgd_mode": False,
        "runtime_split_send_recv": False,
    }

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "_is_owned", False)
        self._values.update(self._MODE_FLAGS)

    def _checked(self, name, value):
        if self._is_owned and name in self._MODE_FLAGS and value != self._values[name]:
            raise Error(
                "config",
                f"DistributeTranspilerConfig.{name} = {value!r}: {_BY_FACTORY}",
                "use DistributedStrategyFactory.create_{sync,half_async,async,geo}_strategy",
            )
        if value not in self._CHOICES.get(name, (value,)):
            raise Error("config", f"DistributeTranspilerConfig.{name} = {value!r}: it is none of its values")
        if name in ("min_block_size", "geo_sgd_need_push_nums"):
            return whole_number(f"DistributeTranspilerConfig.{name}", value, 1)
        return value

    def take_mode(self, flags: dict[str, bool]) -> None:
        """Sets the mode's flags: for the strategy only."""
        object.__setattr__(self, "_is_owned", True)
        self._values.update({**self._MODE_FLAGS, **flags})


class TrainerRuntimeConfig(Config):
    """How a trainer sends gradients, as keys of a dict `runtime_configs` or of the dict that is passed.

    communicator_max_merge_var_num: async; so many waiting gradients at most are added up into one push.
    communicator_send_queue_size: async; so many may wait to be sent before threads do.
    communicator_independent_recv_thread with communicator_min_send_grad_num_before_recv: async; a thread
    pulls dense parameters after so many pushes, without it after each. In geo mode both numbers follow the
    update frequency, as in Paddle.
    No effect: communicator_thread_pool_size (a request goes to all servers at once),
    communicator_send_wait_times (a gradient with no other to merge with is sent),
    communicator_is_sgd_optimizer (servers know their rule), rpc_deadline and rpc_retry_times (a call ends
    when its server is gone, and is never repeated unseen).
    FLAGS_KEY of the environment is the default of a key, CPU_NUM that of the first two and of the number of
    pushes, as in Paddle.
    """

    _DEFAULTS = {
        "communicator_max_merge_var_num": "1",
        "communicator_send_queue_size": "1",
        "communicator_independent_recv_thread": "1",
        "communicator_min_send_grad_num_before_recv": "1",
        "communicator_thread_pool_size": "5",
        "communicator_send_wait_times": "5",
        "communicator_is_sgd_optimizer": "1",
        "rpc_deadline": "180000",
        "rpc_retry_times": "3",
    }

    def __init__(self) -> None:
        super().__init__()
        threads = dict.fromkeys(
            (
                "communicator_max_merge_var_num",
                "communicator_send_queue_size",
                "communicator_min_send_grad_num_before_recv",
            ),
            os.environ.get("CPU_NUM", "1"),
        )
        for name, default in {**self._DEFAULTS, **threads}.items():
            self._values[name] = os.environ.get(f"FLAGS_{name}", default)

    @property
    def runtime_configs(self) -> dict[str, Any]:
        """The keys with their values: a view, what is set in it is taken over."""
        return _Items(self)

    def get_communicator_flags(self) -> dict[str, str]:
        """The keys with their values, as text."""
        return {name: str(value) for name, value in self._values.items()}

    def number(self, name: str) -> int:
        """The value of communicator_`name` as a whole number."""
        name = "communicator_" + name
        return whole_number(name, self._values[name], 0 if "independent" in name else 1)


class _Items(dict):
    """A config's values as a dict that checks keys."""

    def __init__(self, config):
        super().__init__(config._values)
        self._config = config

    def __setitem__(self, name, value):
        setattr(self._config, name, value)
        super().__setitem__(name, value)

    def update(self, *arguments, **more):
        for name, value in dict(*arguments, **more).items():
            self[name] = value


class ServerRuntimeConfig(Config):
    """Threads of a server in Paddle's own transport: no effect, a server has as many as its machine has
    cores."""

    _DEFAULTS = {"_rpc_send_thread_num": 12, "_rpc_get_thread_num": 12, "_rpc_prefetch_thread_num": 12}


class ExecutionStrategy(Config):
    """How the replicas of a program are run (static/compiler.py). num_threads: threads that compute them, 0:
    one for each. The other keys have no effect: operators run in their order, and keep their memory from run
    to run."""

    _DEFAULTS = {
        "num_threads": 0,
        "num_iteration_per_drop_scope": 100,
        "allow_op_delay": False,
        "use_thread_barrier": False,
        "use_experimental_executor": True,
    }
    _KEPT = {"num_iteration_per_run": (1, "a run is one iteration")}

    def _checked(self, name, value):
        return whole_number("ExecutionStrategy.num_threads", value, 0) if name == "num_threads" else value


class _ReduceStrategy:
    AllReduce = "AllReduce"
    Reduce = "Reduce"


class _GradientScaleStrategy:
    CoeffNumDevice = "CoeffNumDevice"
    One = "One"
    Customized = "Customized"


class BuildStrategy(Config):
    """How the replicas of a program are put together (static/compiler.py): reduce_strategy and
    gradient_scale_strategy. The other keys have no effect, on results or at all: what Paddle's compiler fuses
    and reorders."""

    ReduceStrategy = _ReduceStrategy
    GradientScaleStrategy = _GradientScaleStrategy
    _CHOICES = {
        "reduce_strategy": ("AllReduce", "Reduce"),
        "gradient_scale_strategy": ("CoeffNumDevice", "One", "Customized"),
    }
    _DEFAULTS = {
        "reduce_strategy": _ReduceStrategy.AllReduce,
        "gradient_scale_strategy": _GradientScaleStrategy.CoeffNumDevice,
        "async_mode": False,
        "memory_optimize": None,
        "debug_graphviz_path": "",
        "enable_inplace": True,
        "enable_addto": False,
        "enable_auto_fusion": False,
        "enable_backward_optimizer_op_deps": True,
        "enable_sequential_execution": False,
        "fix_op_run_order": False,
        "fuse_adamw": False,
        "fuse_all_optimizer_ops": False,
        "fuse_all_reduce_ops": True,
        "fuse_bn_act_ops": False,
        "fuse_bn_add_act_ops": True,
        "fuse_broadcast_ops": True,
        "fuse_elewise_add_act_ops": False,
        "fuse_gemm_epilogue": False,
        "fuse_relu_depthwise_conv": False,
        "fused_attention": False,
        "fused_feedforward": False,
        "cache_runtime_context": False,
        "remove_unnecessary_lock": True,
        "sequential_run": False,
        "is_distribution": False,
        "num_trainers": 1,
        "trainer_id": 0,
        "trainers_endpoints": [],
        "mkldnn_enabled_op_types": set(),
        "build_cinn_pass": False,
        "allow_cuda_graph_capture": False,
    }
    _KEPT = {
        "sync_batch_norm": (False, "each replica normalises its own part of the batch"),
        "nccl_comm_num": (1, _NOT_COLLECTIVE),
        "bkcl_comm_num": (1, _NOT_COLLECTIVE),
        "use_hierarchical_allreduce": (False, _NOT_COLLECTIVE),
        "hierarchical_allreduce_inter_nranks": (0, _NOT_COLLECTIVE),
    }

    def __init__(self) -> None:
        super().__init__()
        self._values.update(trainers_endpoints=[], mkldnn_enabled_op_types=set())

    def numbered(self) -> dict[str, Any]:
        """The values, with the places of choices, as Paddle's files have them."""
        choices = {name: names.index(self._values[name]) for name, names in self._CHOICES.items()}
        return {**self._values, **choices}

    @classmethod
    def named(cls, values: dict[str, Any]) -> dict[str, Any]:
        """What numbered() gave, with the names of choices again."""
        places = {name: dict(enumerate(names)) for name, names in cls._CHOICES.items()}
        return {name: places.get(name, {}).get(value, value) for name, value in values.items()}

    def _checked(self, name, value):
        choices = self._CHOICES.get(name)
        if choices is not None and value not in choices:
            raise Error("config", f"BuildStrategy.{name} = {value!r}", f"use one of {', '.join(choices)}")
        return value

"""DistributedStrategy: what a script says about how to train together."""

import copy
from typing import Any

from fleetrun._arguments import warn_once, whole_number
from fleetrun._error import Error
from fleetrun._lazy import MissingName, missing
from fleetrun.distributed.fleet import _collective_fields as collective_fields
from fleetrun.distributed.fleet import _stored_fields as stored_fields
from fleetrun.distributed.fleet._configs import BuildStrategy, ExecutionStrategy
from fleetrun.distributed.fleet._exchange import Exchange

_OWNER = "paddle.distributed.fleet.DistributedStrategy"

# The keys that Paddle documents for a_sync_configs, with their defaults.
_A_SYNC_DEFAULTS: dict[str, Any] = {
    "k_steps": -1,
    "max_merge_var_num": 1,
    "send_queue_size": 16,
    "independent_recv_thread": False,
    "min_send_grad_num_before_recv": 1,
    "thread_pool_size": 1,
    "send_wait_times": 1,
    "runtime_split_send_recv": False,
    "launch_barrier": True,
    "heter_worker_device_guard": "cpu",
    "lr_decay_steps": 10,
    "use_ps_gpu": 0,
    # Not one of Paddle's.
    "max_staleness": 0,
}

_GEO_STEPS = 100

_ATTRIBUTES = (
    "a_sync",
    "a_sync_configs",
    "sparse_table_configs",
    "fleet_desc_configs",
    "trainer_desc_configs",
    "adam_d2sum",
    "fs_client_param",
    "build_strategy",
    "execution_strategy",
)

# Paddle's keys of trainer_desc_configs with their defaults. Fields to dump are said once to be of no effect;
# what would leave tables with the trainers is refused.
_TRAINER_DESC: dict[str, Any] = {
    "dump_fields_path": "",
    "dump_fields": [],
    "dump_param": [],
    "stat_var_names": [],
    "trainer": "",
    "device_worker": "",
    "local_sparse": [],
    "remote_sparse": [],
}


class DistributedStrategy:
    """How trainers and servers exchange values and gradients.

    a_sync and a_sync_configs["k_steps"] choose the mode, by Paddle's rule:

        a_sync  k_steps  mode
        True    <= 0     async: each gradient is applied when it arrives
        True    > 0      geo: trainers train copies of their own, and exchange differences every
                         k_steps batches; None, at which Paddle stops, is 100
        False   <= 0     sync: the gradients of one step of all trainers are averaged
        False   > 0      refused

    As in Paddle, setting a_sync sets k_steps to 0, so set a_sync_configs after it. (half_async is chosen by
    the older DistributedStrategyFactory.create_half_async_strategy() only, as in Paddle.)

    The other keys of a_sync_configs:

        max_merge_var_num              async: so many waiting gradients at most are added up into one push
        send_queue_size                async: so many gradients of a trainer may wait to be sent before its
                                       threads do
        independent_recv_thread,       async: with the first, a thread pulls dense parameters after so many
          min_send_grad_num_before_recv  of its pushes; without it after each, as in Paddle
        max_staleness                  async: a thread may be ahead of the slowest one of all trainers by so
                                       many steps, and waits then; 0: by any. Not one of Paddle's keys
        use_ps_gpu                     no effect (said once): tables lie in host memory
        lr_decay_steps                 no effect: a learning rate is a number here, there is nothing to decay
        thread_pool_size               no effect: a request goes to all servers at once, whatever the number
                                       of threads
        send_wait_times                no effect: a gradient that finds no other to be merged with is sent,
                                       not waited with
        runtime_split_send_recv        no effect: requests are always split by server when they are made
        launch_barrier                 no effect: trainers wait for servers to answer, which needs no barrier
                                       before
        heter_worker_device_guard      no effect: every operator runs on the CPU

    sparse_table_configs, fleet_desc_configs: {parameter: {key: value}} of sparse tables; see
    _table_configs.py.
    trainer_desc_configs: local_sparse and remote_sparse take their defaults only; the others have no effect,
    which is said once of fields to dump.
    adam_d2sum: True trains the dense tables of Adam by Paddle's rule of that name in sync and async mode; it
    has no effect with another optimizer (said once), in geo mode and without servers, as in Paddle.

    Collective training has fields of its own, see _collective_fields.py; what else Paddle's strategy has is
    in _stored_fields.py.

    build_strategy, execution_strategy: taken as they are, and printed; what runs on replicas is told by
    CompiledProgram.with_data_parallel(build_strategy=…, exec_strategy=…).

    print(strategy) shows all fields as a table.

    Any other attribute is an AttributeError that names it, any other key an Error.
    """

    __slots__ = (
        "_a_sync",
        "_a_sync_configs",
        "_sparse_table_configs",
        "_fleet_desc_configs",
        "_trainer_desc_configs",
        "tables",
        "_build_strategy",
        "_execution_strategy",
        "_collective",
        "_adam_d2sum",
        "_fs_client_param",
        "_stored",
    )

    def __init__(self) -> None:
        self._collective = collective_fields.defaults()
        self._stored = {
            name: dict(value) if isinstance(value, dict) else value
            for name, value in stored_fields.DEFAULTS.items()
        }
        self._fs_client_param = stored_fields.FsClientParameter()
        self._adam_d2sum = False
        self._a_sync = True
        self._a_sync_configs: dict[str, Any] = dict(_A_SYNC_DEFAULTS)
        self._build_strategy = BuildStrategy()
        self._execution_strategy = ExecutionStrategy()
        self._sparse_table_configs: dict[Any, Any] = {}
        self._fleet_desc_configs: dict[Any, Any] = {}
        self._trainer_desc_configs = dict(_TRAINER_DESC)
        self.tables: dict[Any, Any] = {}

    @property
    def a_sync(self) -> bool:
        """True: asynchronous, or geo with k_steps > 0. False: synchronous."""
        return self._a_sync

    @a_sync.setter
    def a_sync(self, flag: bool) -> None:
        if not isinstance(flag, bool):
            raise Error("config", f"DistributedStrategy.a_sync = {flag!r} is not True or False")
        self._a_sync = flag
        self._a_sync_configs["k_steps"] = 0

    @property
    def a_sync_configs(self) -> dict[str, Any]:
        """The documented keys with their values."""
        return dict(self._a_sync_configs)

    @a_sync_configs.setter
    def a_sync_configs(self, configs: Any) -> None:
        for key, value in configs.items():
            if key not in _A_SYNC_DEFAULTS:
                raise Error("config", missing("DistributedStrategy.a_sync_configs", key, _A_SYNC_DEFAULTS))
            if key == "use_ps_gpu" and value:
                warn_once(
                    "use_ps_gpu",
                    f"a_sync_configs use_ps_gpu={value} has no effect: tables lie in host memory",
                )
            if key == "k_steps" and value is None:
                warn_once(
                    "a_sync_configs k_steps=None",
                    f"a_sync_configs k_steps=None: geo mode with differences every {_GEO_STEPS} batches, "
                    "which Paddle 1.x's geo mode has; give a number for another rhythm",
                )
                value = _GEO_STEPS
            if key in ("k_steps", "max_merge_var_num", "send_queue_size", "min_send_grad_num_before_recv"):
                value = whole_number(f"a_sync_configs {key}", value, -1 if key == "k_steps" else 1)
            if key == "max_staleness":
                value = whole_number(f"a_sync_configs {key}", value, 0)
            self._a_sync_configs[key] = value

    @property
    def sparse_table_configs(self) -> dict[str, Any]:
        """What is said of sparse tables as {parameter: {"table_parameters.PARAMETER.FIELD": value}}."""
        return dict(self._sparse_table_configs)

    @sparse_table_configs.setter
    def sparse_table_configs(self, configs: Any) -> None:
        from fleetrun.distributed.fleet._table_configs import parse_table_parameters

        self.tables = {**self.tables, **parse_table_parameters(configs)}
        self._sparse_table_configs.update(configs)

    @property
    def fleet_desc_configs(self) -> dict[str, Any]:
        """What is said of sparse tables as {parameter: {"sparse_…": value}}."""
        return dict(self._fleet_desc_configs)

    @fleet_desc_configs.setter
    def fleet_desc_configs(self, configs: Any) -> None:
        from fleetrun.distributed.fleet._table_configs import parse_desc

        self.tables = {**self.tables, **parse_desc(configs)}
        self._fleet_desc_configs.update(configs)

    @property
    def trainer_desc_configs(self) -> dict[str, Any]:
        """Paddle's keys with their values."""
        return dict(self._trainer_desc_configs)

    @trainer_desc_configs.setter
    def trainer_desc_configs(self, configs: Any) -> None:
        for key, value in configs.items():
            if key not in _TRAINER_DESC:
                raise Error("config", missing("DistributedStrategy.trainer_desc_configs", key, _TRAINER_DESC))
            if value and key.endswith("_sparse"):
                raise Error(
                    "config",
                    f"trainer_desc_configs {key}={value!r}: every table lies on the servers",
                    "leave it out",
                )
            if value and key.startswith("dump"):
                warn_once(
                    "trainer_desc_configs",
                    f"trainer_desc_configs {key}={value!r} has no effect: nothing is dumped; fetch_list "
                    "shows values",
                )
            self._trainer_desc_configs[key] = value

    @property
    def adam_d2sum(self) -> bool:
        """Whether Adam's dense tables follow Paddle's rule of this name."""
        return self._adam_d2sum

    @adam_d2sum.setter
    def adam_d2sum(self, flag: bool) -> None:
        if not isinstance(flag, bool):
            raise Error("config", f"DistributedStrategy.adam_d2sum = {flag!r} is not True or False")
        self._adam_d2sum = flag

    @property
    def fs_client_param(self) -> stored_fields.FsClientParameter:
        """uri, user, passwd and hadoop_bin as attributes; set as a dict of them. They have no effect."""
        return self._fs_client_param

    @fs_client_param.setter
    def fs_client_param(self, configs: dict[str, str]) -> None:
        self._fs_client_param = stored_fields.FsClientParameter(**configs)

    @property
    def build_strategy(self) -> BuildStrategy:
        """A BuildStrategy; set as an object or as a dict."""
        return self._build_strategy

    @build_strategy.setter
    def build_strategy(self, config: Any) -> None:
        self._build_strategy.update(config)

    @property
    def execution_strategy(self) -> ExecutionStrategy:
        """An ExecutionStrategy; set as an object or as a dict."""
        return self._execution_strategy

    @execution_strategy.setter
    def execution_strategy(self, config: Any) -> None:
        self._execution_strategy.update(config)

    @property
    def exchange(self) -> Exchange:
        """The mode and its settings. Throws: Error(config) for a_sync=False with k_steps > 0."""
        configs = self._a_sync_configs
        steps = configs["k_steps"]
        if not self._a_sync and steps > 0:
            raise Error(
                "config",
                f"a_sync=False with a_sync_configs k_steps={steps}: synchronous training has no k_steps",
                "set a_sync = True for geo mode, or leave k_steps out",
            )
        mode = ("geo" if steps > 0 else "async") if self._a_sync else "sync"
        return Exchange(
            mode,
            geo_steps=max(steps, 1),
            merged=configs["max_merge_var_num"],
            waiting=configs["send_queue_size"],
            pull_every=configs["min_send_grad_num_before_recv"] if configs["independent_recv_thread"] else 1,
            max_ahead=configs["max_staleness"],
        )

    def scaler_arguments(self) -> dict[str, Any]:
        """Those of amp_configs that are arguments of fleetrun.amp.GradScaler."""
        return {"enable": self.amp, **{name: self.amp_configs[name] for name in collective_fields.SCALER}}

    def __getattr__(self, name: str) -> Any:
        if name in collective_fields.ALIASES:
            field, key = collective_fields.ALIASES[name]
            return getattr(self, field) if key is None else getattr(self, field)[key]
        if name in collective_fields.DEFAULTS:
            return copy.deepcopy(self._collective[name])
        if name in stored_fields.DEFAULTS:
            return self._stored[name]
        known = (_ATTRIBUTES, collective_fields.DEFAULTS, collective_fields.ALIASES, stored_fields.DEFAULTS)
        raise MissingName(_OWNER, name, lambda: [each for names in known for each in names])

    def __setattr__(self, name: str, value: Any) -> None:
        if name in collective_fields.ALIASES:
            field, key = collective_fields.ALIASES[name]
            setattr(self, field, value if key is None else {key: value})
            return
        if name in collective_fields.DEFAULTS:
            self._collective[name] = collective_fields.checked(name, value, self._collective[name])
            return
        if name in stored_fields.DEFAULTS:
            self._stored[name] = stored_fields.checked(name, value, self._stored[name])
            return
        if name not in _ATTRIBUTES and name not in self.__slots__:
            self.__getattr__(name)
        object.__setattr__(self, name, value)

    def save_to_prototxt(self, output: str) -> None:
        """Writes the fields that are not at their defaults into the file `output`, as Paddle's text format
        has them. What is said of single tables is not among them."""
        from fleetrun.distributed.fleet._strategy_text import text_of

        with open(output, "w") as file:
            file.write(text_of(self))

    def load_from_prototxt(self, pb_file: str) -> None:
        """Sets the fields that the file says, of save_to_prototxt() here or in Paddle; others stay. Throws:
        Error(data) for a file of another form, Error(config) and AttributeError as the fields do."""
        from fleetrun.distributed.fleet._strategy_text import read_into

        with open(pb_file) as file:
            read_into(self, file.read(), pb_file)

    def __str__(self) -> str:
        from fleetrun.distributed.fleet._strategy_table import table_of

        return table_of(self)

    def __repr__(self) -> str:
        return f"DistributedStrategy(a_sync={self._a_sync}, a_sync_configs={self._a_sync_configs})"

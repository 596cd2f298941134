"""DistributedStrategy: what a script says about how to train together."""

from fleetrun._lazy import missing
from fleetrun._error import Error

# The keys that Paddle documents for a_sync_configs, with their defaults; the table below says which are honoured.
_A_SYNC_DEFAULTS = {
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
}


class DistributedStrategy:
    """a_sync: True applies each trainer's gradients as they come; False averages one step of all trainers.

    a_sync_configs tunes Paddle's communicator threads, which fleetrun does not have: the documented keys are
    accepted and have no effect, except that k_steps > 0 (geo mode) and use_ps_gpu are refused.
    Any other attribute is an AttributeError that names it.
    """

    __slots__ = ("_a_sync", "_a_sync_configs")

    def __init__(self):
        self._a_sync = True
        self._a_sync_configs = dict(_A_SYNC_DEFAULTS)

    @property
    def a_sync(self):
        """True: asynchronous. False: synchronous."""
        return self._a_sync

    @a_sync.setter
    def a_sync(self, flag):
        if not isinstance(flag, bool):
            raise Error("config", f"DistributedStrategy.a_sync = {flag!r} is not True or False")
        self._a_sync = flag

    @property
    def a_sync_configs(self):
        """The documented keys with their values."""
        return dict(self._a_sync_configs)

    @a_sync_configs.setter
    def a_sync_configs(self, configs):
        for key, value in configs.items():
            if key not in _A_SYNC_DEFAULTS:
                raise Error("config", missing("DistributedStrategy.a_sync_configs", key, _A_SYNC_DEFAULTS))
            if key == "k_steps" and value > 0:
                raise Error("config", f"a_sync_configs k_steps={value}: geo mode is not there yet",
                            "use a_sync=True with k_steps=-1 (asynchronous) or a_sync=False (synchronous)")
            if key == "use_ps_gpu" and value:
                raise Error("config", f"a_sync_configs use_ps_gpu={value}: tables live in host memory", "leave it at 0")
            self._a_sync_configs[key] = value

    def __getattr__(self, name):
        raise AttributeError(missing("paddle.distributed.fleet.DistributedStrategy", name, ("a_sync", "a_sync_configs")))

    def __setattr__(self, name, value):
        if name not in ("a_sync", "a_sync_configs", "_a_sync", "_a_sync_configs"):
            self.__getattr__(name)
        object.__setattr__(self, name, value)

    def __repr__(self):
        return f"DistributedStrategy(a_sync={self._a_sync}, a_sync_configs={self._a_sync_configs})"

"""What a DistributedStrategy says about collective training: its fields, their defaults, and which values
they take.

    field                             what it does
    nccl_comm_num                     so many communicators; buckets of gradients take them in turn
    fuse_all_reduce_ops               gradients are joined to buckets; False: each is reduced alone
    fuse_grad_size_in_MB              a bucket has at least so much (FLAGS_fuse_parameter_memory_size is taken
                                      before it)
    last_comm_group_size_MB           the bucket that is full first has about so much
    use_hierarchical_allreduce,       reduced within groups of consecutive ranks, then among the first of
      hierarchical_allreduce_inter_nranks  each, in two levels; the ranks of a group, 1: those of a host
    fp16_allreduce                    float32 gradients travel as float16
    localsgd, localsgd_configs        ranks train apart and average parameters every k_steps steps, from
                                      begin_step on
    use_local_sgd, local_sgd_steps,   the same in document 004's words: on or off, k_steps, begin_step
      local_sgd_is_warm_steps
    adaptive_localsgd (and _configs)  local SGD that chooses the number of steps, from init_k_steps on
    dgc, dgc_configs                  deep gradient compression (fleetrun/distributed/parallel/compression.py)
    amp, amp_configs                  read by scripts that make a GradScaler:
                                      fleetrun.amp.GradScaler(**strategy.scaler_arguments()); what is cast is
                                      for the script to say
    gradient_merge, lamb, lars (and _configs)
                                      the optimizer that trains a program (_asked_optimizer.py)
    num_threads, num_iteration_per_drop_scope, fetch_frequency, fuse_bn_act_ops, fuse_elewise_add_act_ops,
    sync_nccl_allreduce, find_unused_parameters
                                      no effect: a program's operators run in order on one thread and keep
                                      their memory; a fetch costs nothing; parameters that nobody used are
                                      always found
Source: document 004.
"""

import copy

from fleetrun._arguments import plain, warn_once
from fleetrun._error import Error
from fleetrun._lazy import missing

_LOCAL = {"k_steps": 1, "begin_step": 1}
_ADAPTIVE = {"init_k_steps": 1, "begin_step": 1}
_DGC = {"rampup_begin_step": 0, "rampup_step": 1, "sparsity": [0.999]}
_MERGE = {"k_steps": 1, "avg": True}
_LAMB = {"lamb_weight_decay": 0.01, "exclude_from_weight_decay": []}
_LARS = {
    "lars_coeff": 0.001,
    "lars_weight_decay": 0.0005,
    "epsilon": 0.0,
    "exclude_from_weight_decay": [],
}
SCALER = {
    "init_loss_scaling": 32768.0,
    "incr_every_n_steps": 1000,
    "decr_every_n_nan_or_inf": 2,
    "incr_ratio": 2.0,
    "decr_ratio": 0.8,
    "use_dynamic_loss_scaling": True,
}
_AMP = {
    **SCALER,
    "custom_white_list": [],
    "custom_black_list": [],
    "custom_black_varnames": [],
    "use_pure_fp16": False,
    "use_pure_bf16": False,
    "use_fp16_guard": True,
    "use_optimizer_fp16": False,
}

DEFAULTS = {
    "nccl_comm_num": 1,
    "fuse_all_reduce_ops": True,
    "fuse_grad_size_in_MB": 32,
    "last_comm_group_size_MB": 1.0,
    "use_hierarchical_allreduce": False,
    "hierarchical_allreduce_inter_nranks": 1,
    "fp16_allreduce": False,
    "localsgd": False,
    "localsgd_configs": _LOCAL,
    "adaptive_localsgd": False,
    "adaptive_localsgd_configs": _ADAPTIVE,
    "dgc": False,
    "dgc_configs": _DGC,
    "amp": False,
    "amp_configs": _AMP,
    "gradient_merge": False,
    "gradient_merge_configs": _MERGE,
    "lamb": False,
    "lamb_configs": _LAMB,
    "lars": False,
    "lars_configs": _LARS,
    "num_threads": 1,
    "num_iteration_per_drop_scope": 1,
    "fetch_frequency": 1,
    "fuse_bn_act_ops": False,
    "fuse_elewise_add_act_ops": False,
    "sync_nccl_allreduce": True,
    "find_unused_parameters": False,
}

# Of these Paddle refuses a value of another type.
_STRICT = ("fp16_allreduce", "last_comm_group_size_MB")

# Document 004's words, and what they are here.
ALIASES = {
    "use_local_sgd": ("localsgd", None),
    "local_sgd_steps": ("localsgd_configs", "k_steps"),
    "local_sgd_is_warm_steps": ("localsgd_configs", "begin_step"),
    "exec_strategy": ("execution_strategy", None),
}


def defaults():
    """A copy of all fields."""
    return copy.deepcopy(DEFAULTS)


def checked(name, given, current):
    """What a field becomes; what it is, said once, for a value of another type where Paddle ignores that.
    Throws: Error(config) for a value below 1, of another type within a dict, or a key that is not there."""
    default = DEFAULTS[name]
    if isinstance(default, dict):
        if not isinstance(given, dict):
            raise Error("config", f"DistributedStrategy.{name} = {given!r} is not a dict")
        for key in given:
            if key not in default:
                raise Error("config", missing(f"DistributedStrategy.{name}", key, default))
        return {
            **current,
            **{key: _value(f"{name} {key}", value, default[key]) for key, value in given.items()},
        }
    what = f"DistributedStrategy.{name}"
    if name not in _STRICT and not isinstance(given, bool if isinstance(default, bool) else int):
        return left(what, given, current)
    return _value(what, given, default)


def left(what, given, current):
    """The value of a field that was given one of another type, which Paddle ignores."""
    kind = "True or False" if isinstance(current, bool) else "a whole number"
    warn_once(f"type of {what}", f"{what} = {given!r} is not {kind}, and has no effect: it is {current!r}")
    return current


def _value(what, given, default):
    given = plain(given)
    if isinstance(default, bool):
        if not isinstance(given, bool):
            raise Error("config", f"{what} = {given!r} is not True or False")
        return given
    if isinstance(default, list):
        return list(given)
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise Error("config", f"{what} = {given!r} is not a number")
    if isinstance(default, int) and (int(given) != given or given < min(default, 1)):
        raise Error("config", f"{what} = {given!r}", f"it is a whole number of at least {min(default, 1)}")
    return type(default)(given)

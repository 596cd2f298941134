"""What a DistributedStrategy keeps of Paddle's other fields: those that change no number here are kept, with
one warning when they are set; those that would change one take their default only.

    fs_client_param      uri, user, passwd and hadoop_bin of a file system that Paddle's servers save to
    the others           _UNUSED and _REFUSED below; a dict of configs is kept whatever is in it, since it
                         counts only beside its switch
Names and defaults: Paddle 2.6.2, distributed_strategy.proto.
"""

from fleetrun._arguments import warn_once
from fleetrun._error import Error
from fleetrun._lazy import missing
from fleetrun.distributed.fleet._collective_fields import left

_OWNER = "DistributedStrategy"

# Memory, speed, GPUs: the same numbers with any value.
_UNUSED = {
    "recompute": False,
    "sharding": False,
    "elastic": False,
    "semi_auto": False,
    "auto_search": False,
    "split_data": True,
    "cudnn_exhaustive_search": False,
    "conv_workspace_size_limit": 512,
    "cudnn_batchnorm_spatial_persistent": False,
    "without_graph_optimization": True,
    "fuse_grad_merge": False,
    "fuse_grad_size_in_num": 8,
    "heter_ccl_mode": False,
}
_REFUSED = {
    "auto": (False, "nothing chooses strategies by itself"),
    "pipeline": (False, "a program runs as a whole on every trainer"),
    "tensor_parallel": (False, "a parameter lies on every trainer as a whole"),
    "sync_batch_norm": (False, "each trainer normalises its own part of the batch"),
    "asp": (False, "parameters are not pruned"),
    "qat": (False, "nothing is quantized"),
    "is_fl_ps_mode": (False, "there is no coordinator"),
    "is_with_coordinator": (False, "there is no coordinator"),
}
_CONFIGS = (
    "recompute_configs",
    "sharding_configs",
    "gradient_scale_configs",
    "pipeline_configs",
    "tensor_parallel_configs",
    "qat_configs",
)

# How many ways each split the job: those whose one value leaves every trainer a whole program.
_HYBRID = {
    "dp_degree": -1,
    "mp_degree": 1,
    "pp_degree": 1,
    "sharding_degree": 1,
    "sep_degree": 1,
    "mp_configs": {},
    "pp_configs": {},
    "sharding_configs": {},
}
_SPLITS = {
    "mp_degree": "tensor_parallel",
    "pp_degree": "pipeline",
    "sep_degree": "tensor_parallel",
}

DEFAULTS = {
    **_UNUSED,
    **{name: default for name, (default, _) in _REFUSED.items()},
    **{name: {} for name in _CONFIGS},
    "hybrid_configs": _HYBRID,
}


class FsClientParameter:
    """The file system that Paddle's servers reach by a client of their own; here they write to their
    disks."""

    uri: str
    user: str
    passwd: str
    hadoop_bin: str

    _FIELDS = ("uri", "user", "passwd", "hadoop_bin")

    def __init__(self, **fields):
        for name in fields:
            if name not in self._FIELDS:
                raise Error("config", missing(f"{_OWNER}.fs_client_param", name, self._FIELDS))
        self.__dict__.update({name: str(fields.get(name) or "") for name in self._FIELDS})
        if self.uri:
            warn_once(
                "fs_client_param",
                f'{_OWNER}.fs_client_param uri="{self.uri}" has no effect: servers save to their own disks',
            )

    def __str__(self):
        """As a protobuf message prints, but for the password."""
        return "".join(
            f'{name}: "{value}"\n' for name, value in vars(self).items() if value and name != "passwd"
        )

    __repr__ = __str__


def checked(name, given, current):
    """What a field becomes, said once where it has no effect. Throws: Error(config) for a value that would
    change numbers."""
    if name in _CONFIGS:
        if not isinstance(given, dict):
            raise Error("config", f"{_OWNER}.{name} = {given!r} is not a dict")
        if given.get("scale_strategy", "avg") != "avg":
            warn_once(
                name, f"{_OWNER}.{name} has no effect: gradients are averaged over trainers, as in Paddle"
            )
        return {**current, **given}
    if name == "hybrid_configs":
        return {**current, **_checked_hybrid(given)}
    default = DEFAULTS[name]
    if type(given) is not type(default):
        return left(f"{_OWNER}.{name}", given, current)
    if given == default:
        return given
    if name in _REFUSED:
        raise Error("config", f"{_OWNER}.{name} = {given!r}: {_REFUSED[name][1]}", f"leave it at {default!r}")
    warn_once(f"{_OWNER}.{name}", f"{_OWNER}.{name} = {given!r} has no effect")
    return given


def _checked_hybrid(given):
    """The degrees of hybrid_configs: trainers split the data, and nothing else is split."""
    name = f"{_OWNER}.hybrid_configs"
    if not isinstance(given, dict):
        raise Error("config", f"{name} = {given!r} is not a dict")
    for key, value in given.items():
        if key not in _HYBRID and key != "order":
            raise Error("config", missing(name, key, _HYBRID))
        if key in _SPLITS and value != 1:
            raise Error(
                "config", f'{name}["{key}"] = {value!r}: {_REFUSED[_SPLITS[key]][1]}', "leave it at 1"
            )
    if given.get("sharding_degree", 1) != 1:
        warn_once(
            f"{name}.sharding_degree",
            f'{name}["sharding_degree"] = {given["sharding_degree"]!r} has no effect: every trainer keeps '
            "all parameters, and averages with all others",
        )
    return given

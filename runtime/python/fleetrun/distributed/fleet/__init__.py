"""paddle.distributed.fleet: one Fleet per process, its calls as functions of this module.

A pipe command takes MultiSlotDataGenerator from here, once per file, so nothing is loaded before it is used.
Source: documents 002 and 003.
"""

from fleetrun import _lazy

_FLEET = "distributed.fleet._fleet:the_fleet"
# The Fleet's methods under their names, and three that are others' as well.
_CALLS = (
    "init is_server is_worker is_first_worker init_server run_server init_worker stop_worker worker_index "
    "worker_num server_index server_num worker_endpoints server_endpoints local_rank node_num is_coordinator "
    "barrier_worker distributed_model distributed_optimizer distributed_scaler minimize save_persistables "
    "load_model save_inference_model load_inference_model save_dense_params shrink save_one_table "
    "load_one_table save_cache_model save_cache_table check_save_pre_patch_done all_reduce util"
)
_TWINS = {"rank": "worker_index", "nranks": "worker_num", "world_size": "worker_num"}

_named, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.names(
            "distributed.fleet.data_generator",
            "MultiSlotDataGenerator MultiSlotStringDataGenerator DataGenerator",
        ),
        **_lazy.names("distributed.fleet._roles", "UserDefinedRoleMaker PaddleCloudRoleMaker Role"),
        **_lazy.names(
            "distributed.dataset",
            "DatasetBase DatasetFactory FileInstantDataset InMemoryDataset QueueDataset",
        ),
        "DistributedStrategy": "distributed.fleet._strategy:DistributedStrategy",
        "Fleet": "distributed.fleet._fleet:Fleet",
        "UtilBase": "distributed.fleet._util:UtilBase",
        **_lazy.names("distributed.fleet.log_util", "get_log_level_code get_log_level_name set_log_level"),
        "base": "distributed.fleet.base",
        "data_generator": "distributed.fleet.data_generator",
        "launch": "distributed.fleet.launch",
        "log_util": "distributed.fleet.log_util",
        "meta_optimizers": "distributed.fleet.meta_optimizers",
        "metrics": "distributed.fleet.metrics",
        "utils": "distributed.fleet.utils",
        "fleet": _FLEET,
        **{name: f"{_FLEET}.{name}" for name in _CALLS.split()},
        **{name: f"{_FLEET}.{call}" for name, call in _TWINS.items()},
    },
)


def __getattr__(name: str) -> object:
    if name not in ("_role_maker", "_final_strategy"):
        return _named(name)
    # Scripts ask the role maker of fleet.init() itself; another init() makes another one.
    from fleetrun.distributed.fleet._fleet import the_fleet

    return getattr(the_fleet, name)

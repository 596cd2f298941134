"""The fields of DistributedStrategy that are for collective training:
names, defaults, and what they refuse."""


def test_fields_have_paddles_defaults_and_document_004s_names(job):
    job("""
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

strategy = fleet.DistributedStrategy()
assert (strategy.nccl_comm_num, strategy.fuse_all_reduce_ops, strategy.fuse_grad_size_in_MB) == (1, True, 32)
assert strategy.localsgd_configs == {"k_steps": 1, "begin_step": 1}
assert strategy.amp_configs["init_loss_scaling"] == 32768.0 and strategy.amp_configs["decr_ratio"] == 0.8
strategy.use_local_sgd = True
strategy.local_sgd_is_warm_steps = 30
strategy.local_sgd_steps = 4
assert strategy.localsgd and strategy.localsgd_configs == {"k_steps": 4, "begin_step": 30}
assert strategy.local_sgd_steps == 4
execution = paddle.static.ExecutionStrategy()
execution.num_threads = 3
execution.num_iteration_per_drop_scope = 30
strategy.exec_strategy = execution
assert strategy.execution_strategy.num_threads == 3
for name, value in (("num_threads", 3), ("fetch_frequency", 10), ("num_iteration_per_drop_scope", 30), ("fuse_bn_act_ops", True),
                    ("fuse_elewise_add_act_ops", True), ("use_hierarchical_allreduce", True),
                    ("hierarchical_allreduce_inter_nranks", 8), ("nccl_comm_num", 2)):
    setattr(strategy, name, value)
    assert getattr(strategy, name) == value
# A dict that was read is a copy.
strategy.dgc_configs["rampup_step"] = 9
assert strategy.dgc_configs["rampup_step"] == 1
for change, what in ((lambda: setattr(strategy, "nccl_comm_num", 0), "nccl_comm_num = 0"),
                     (lambda: setattr(strategy, "fp16_allreduce", 1), "is not True or False"),
                     (lambda: setattr(strategy, "local_sgd_steps", 0), "k_steps = 0"),
                     (lambda: setattr(strategy, "localsgd_configs", {"k_step": 1}), "did you mean"),
                     (lambda: setattr(strategy, "localsgd_configs", {"k_steps": "x"}), "is not a number")):
    try:
        change()
    except paddle.Error as error:
        assert error.kind == "config" and what in str(error), error
    else:
        raise AssertionError(what)
# Of another type: Paddle warns and leaves it.
for name, value in (("nccl_comm_num", 1.5), ("fuse_all_reduce_ops", 1), ("fetch_frequency", "x"), ("amp", 1)):
    before = getattr(strategy, name)
    setattr(strategy, name, value)
    assert getattr(strategy, name) is before
strategy.amp_configs = {"custom_black_list": ["tanh"], "use_pure_fp16": True, "init_loss_scaling": 8}
assert strategy.amp_configs["custom_black_list"] == ["tanh"]
assert strategy.scaler_arguments()["init_loss_scaling"] == 8 and "use_pure_fp16" not in strategy.scaler_arguments()
print("done")
""", 1).succeeded()


def test_a_layer_of_the_engine_is_no_module(job):
    result = job("""
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

fleet.init(is_collective=True)
try:
    fleet.distributed_model(paddle.nn.Linear(4, 1))
except paddle.Error as error:
    print(error)
print("done")
""", 2).succeeded()
    assert "it is not a torch.nn.Module" in result.logs[1]


def test_fleets_own_sums_and_barriers(job):
    job("""
import numpy as np
import fleetrun.distributed.fleet as fleet

fleet.init(is_collective=True)
assert fleet.util.all_reduce(np.array([1.0, fleet.worker_index()])).tolist() == [3.0, 3.0]
assert fleet.util.all_gather(fleet.worker_index()) == [0, 1, 2]
fleet.barrier_worker()
print("done")
""", 3).succeeded()

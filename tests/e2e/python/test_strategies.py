"""Strategies: how a_sync and its configs choose a mode,
and the older factory with its configuration objects."""

PATHS = """
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy_factory import (
    DistributedStrategyFactory)
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory
from paddle.incubate.distributed.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    TrainerRuntimeConfig)
from paddle.distributed.transpiler import DistributeTranspilerConfig
"""


def refusals(run, package, prelude, *changes):
    """The first line of what each change to `strategy` is refused with."""
    listed = ", ".join(f"lambda: {change}" for change in changes)
    return run(f"""
import paddle
{prelude}
for change in ({listed},):
    try:
        change()
        print("taken")
    except (paddle.Error, AttributeError) as error:
        print(str(error).splitlines()[0])
""", PYTHONPATH=f"{package}/_compat").stdout.splitlines()


def test_a_sync_and_k_steps_choose_the_mode_as_in_paddle(run):
    done = run("""
import fleetrun.distributed.fleet as fleet
def mode(a_sync, **configs):
    strategy = fleet.DistributedStrategy()
    if a_sync is not None:
        strategy.a_sync = a_sync
    strategy.a_sync_configs = configs
    return f"{strategy.exchange.mode} {strategy.exchange.geo_steps}"
print(mode(None), mode(True), mode(False), mode(True, k_steps=-1), mode(True, k_steps=0), mode(True, k_steps=100),
      mode(False, k_steps=0), mode(False, k_steps=-1), sep="|")
strategy = fleet.DistributedStrategy()
strategy.a_sync_configs = {"k_steps": 100}
strategy.a_sync = True
print(strategy.exchange.mode, strategy.a_sync_configs["k_steps"])
strategy.a_sync_configs = {"max_merge_var_num": 4, "send_queue_size": 8, "min_send_grad_num_before_recv": 3}
print(strategy.exchange)
strategy.a_sync_configs = {"independent_recv_thread": True}
print(strategy.exchange.pull_every)
print(mode(True, k_steps=None))
""")
    assert "a_sync_configs k_steps=None: geo mode with differences every 100 batches" in done.stderr
    assert done.stdout.splitlines() == [
        "async 1|async 1|sync 1|async 1|async 1|geo 100|sync 1|sync 1",
        "async 0",
        "Exchange(mode='async', geo_steps=1, merged=4, waiting=8, pull_every=1, min_block=0, max_ahead=0)",
        "3",
        "geo 100",
    ]


def test_the_factory_makes_each_mode_with_its_configs(run, package):
    done = run(f"""
import paddle
{PATHS}
for make in ("sync", "half_async", "async", "geo"):
    strategy = getattr(DistributedStrategyFactory, f"create_{{make}}_strategy")()
    program = strategy.get_program_config()
    print(strategy.exchange.mode, strategy.exchange.geo_steps, strategy.exchange.min_block, program.half_async,
          program.geo_sgd_mode, program.sync_mode)
print(StrategyFactory.create_geo_strategy().exchange.geo_steps)
strategy = DistributedStrategyFactory.create_geo_strategy(update_frequency=7)
print(strategy.exchange.geo_steps, strategy.get_trainer_runtime_config().runtime_configs["communicator_send_queue_size"])
""", PYTHONPATH=f"{package}/_compat")
    assert done.stdout.splitlines() == [
        "sync 100 8192 True False False",
        "half_async 100 8192 True False False",
        "async 100 8192 False False False",
        "geo 400 8192 False True False",
        "100",
        "7 7",
    ]


def test_configs_are_set_as_objects_and_as_dicts(run, package):
    done = run(f"""
import paddle
{PATHS}
strategy = DistributedStrategyFactory.create_async_strategy()
config = strategy.get_program_config()
config.min_block_size = 81920
print(strategy.exchange.min_block)
config = DistributeTranspilerConfig()
config.min_block_size = 100
strategy.set_program_config(config)
print(strategy.exchange.min_block, strategy.get_program_config().runtime_split_send_recv)
strategy.set_program_config({{"min_block_size": 50}})
print(strategy.exchange.min_block, config.min_block_size)
strategy.set_program_config({{"slice_var_up": False}})
print(strategy.exchange.min_block)
runtime = TrainerRuntimeConfig()
runtime.runtime_configs["communicator_max_merge_var_num"] = "5"
strategy.set_trainer_runtime_config(runtime)
strategy.set_trainer_runtime_config({{"communicator_send_queue_size": 9, "rpc_deadline": 1}})
print(strategy.exchange.merged, strategy.exchange.waiting, strategy.exchange.pull_every)
strategy.set_server_runtime_config({{"_rpc_send_thread_num": 24}})
strategy.set_execute_strategy({{"num_threads": 4}})
strategy.set_build_strategy({{"fuse_all_reduce_ops": False}})
build = paddle.static.BuildStrategy()
build.reduce_strategy = paddle.static.BuildStrategy.ReduceStrategy.Reduce
strategy.set_build_strategy(build)
print(strategy.get_server_runtime_config()._rpc_send_thread_num, strategy.get_execute_strategy().num_threads,
      strategy.get_build_strategy().reduce_strategy, strategy.get_build_strategy().fuse_all_reduce_ops)
""", PYTHONPATH=f"{package}/_compat")
    assert done.stdout.splitlines() == ["81920", "100 True", "50 50", "None", "5 9 1", "24 4 Reduce True"]


def test_what_is_unknown_or_means_something_else_is_refused_by_name(run, package):
    prelude = PATHS + "strategy = DistributedStrategyFactory.create_sync_strategy()\n"
    assert refusals(
        run, package, prelude,
        'strategy.set_program_config({"min_block_sise": 1})',
        'strategy.set_program_config({"min_block_size": 0})',
        'strategy.set_program_config({"geo_sgd_mode": True})',
        'strategy.set_program_config({"enable_dc_asgd": True})',
        'strategy.set_trainer_runtime_config({"communicator_max_merge_var": 1})',
        'strategy.set_server_runtime_config({"threads": 1})',
        'strategy.set_execute_strategy({"num_iteration_per_run": 2})',
        'strategy.set_build_strategy({"fuse": 1})',
        "strategy.set_program_config(5)",
        "strategy.get_program_config().min_blok_size",
        "DistributedStrategyFactory.create_geo_strategy(update_frequency=0)",
    ) == [
        "fleetrun has no DistributeTranspilerConfig.min_block_sise; did you mean "
        "DistributeTranspilerConfig.min_block_size?",
        "DistributeTranspilerConfig.min_block_size=0: it must be at least 1",
        "DistributeTranspilerConfig.geo_sgd_mode = True: the factory's call chooses the mode",
        "DistributeTranspilerConfig.enable_dc_asgd = True: delayed gradients are not compensated",
        "fleetrun has no TrainerRuntimeConfig.communicator_max_merge_var; did you mean "
        "TrainerRuntimeConfig.communicator_max_merge_var_num?",
        "fleetrun has no ServerRuntimeConfig.threads",
        "ExecutionStrategy.num_iteration_per_run = 2: a run is one iteration",
        "fleetrun has no BuildStrategy.fuse",
        "5 is neither a dict nor a DistributeTranspilerConfig",
        "fleetrun has no DistributeTranspilerConfig.min_blok_size; did you mean "
        "DistributeTranspilerConfig.min_block_size?",
        "DistributeTranspilerConfig.geo_sgd_need_push_nums=0: it must be at least 1",
    ]


def test_k_steps_of_synchronous_training_are_refused(run, package):
    prelude = """
import paddle.distributed.fleet as fleet
strategy = fleet.DistributedStrategy()
strategy.a_sync = False
strategy.a_sync_configs = {"k_steps": 5}
"""
    assert refusals(run, package, prelude, "strategy.exchange",
                    'setattr(strategy, "a_sync_configs", {"k_steps": "x"})',
                    'setattr(strategy, "a_sync_configs", {"send_queue_size": 0})') == [
        "a_sync=False with a_sync_configs k_steps=5: synchronous training has no k_steps",
        "a_sync_configs k_steps='x' is not a whole number",
        "a_sync_configs send_queue_size=0: it must be at least 1",
    ]


def test_build_and_execution_strategies_are_taken(run):
    done = run("""
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
strategy = fleet.DistributedStrategy()
build = paddle.static.BuildStrategy()
build.fuse_all_reduce_ops = False
strategy.build_strategy = build
strategy.execution_strategy = {"num_threads": 3}
print(strategy.build_strategy.fuse_all_reduce_ops, strategy.execution_strategy.num_threads)
""")
    assert done.stdout == "False 3\n"


def test_a_strategy_is_printed_as_a_table(run):
    table = run("""
import fleetrun.distributed.fleet as fleet
strategy = fleet.DistributedStrategy()
strategy.a_sync_configs = {"k_steps": 40}
strategy.localsgd = True
print(strategy)
strategy.a_sync = False
print(strategy)
""").stdout
    lines = table.splitlines()
    assert {len(line) for line in lines} == {84} and lines[0] == "    +" + "=" * 78 + "+"
    rows = [line[5:-1].split() for line in lines]
    for row in (["DistributedStrategy", "Overview"], ["a_sync=True", "<->", "a_sync_configs"],
                ["k_steps", "40"],
                ["send_queue_size", "16"], ["localsgd=True", "<->", "localsgd_configs"],
                ["nccl_comm_num", "1"],
                ["Build", "Strategy"], ["reduce_strategy", "AllReduce"], ["Execution", "Strategy"],
                ["a_sync", "False"]):
        assert row in rows, row
    assert rows.index(["a_sync", "False"]) > rows.index(["k_steps", "40"])


# What Paddle 2.6.2 wrote, but for fields of build_strategy at their defaults.
PROTOTXT = """amp: true
a_sync: true
recompute_configs {
  checkpoints: "x"
}
amp_configs {
  init_loss_scaling: 1024
  custom_white_list: "conv2d"
}
a_sync_configs {
  k_steps: 100
  launch_barrier: false
}
build_strategy {
  enable_inplace: false
  reduce_strategy: 1
}
"""


def test_a_strategy_is_kept_in_paddles_text(run, tmp_path):
    (tmp_path / "paddle").write_text(PROTOTXT)
    (tmp_path / "cut").write_text("amp_configs {\n  init_loss_scaling: 1024\n")
    (tmp_path / "unknown").write_text("no_such: 1\n")
    done = run("""
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
def loaded(name):
    strategy = fleet.DistributedStrategy()
    strategy.load_from_prototxt(name)
    return strategy
loaded("paddle").save_to_prototxt("ours")
for strategy in (loaded("paddle"), loaded("ours")):
    print(strategy.exchange.mode, strategy.a_sync_configs["k_steps"], strategy.a_sync_configs["launch_barrier"],
          strategy.amp, strategy.amp_configs["init_loss_scaling"], strategy.amp_configs["custom_white_list"],
          strategy.recompute_configs, strategy.build_strategy.enable_inplace,
          strategy.build_strategy.reduce_strategy)
print(open("ours").read())
for name in ("cut", "unknown"):
    try:
        loaded(name)
    except (paddle.Error, AttributeError) as error:
        print(str(error).splitlines()[0])
""")
    told = "geo 100 False True 1024.0 ['conv2d'] {'checkpoints': ['x']} False Reduce"
    lines = done.stdout.splitlines()
    assert lines[:2] == [told, told]
    assert {"  reduce_strategy: 1", "amp: true", '  custom_white_list: "conv2d"'} <= set(lines)
    assert lines[-2:] == [
        "cut is not a DistributedStrategy in text form: a block that does not end",
        "fleetrun has no paddle.distributed.fleet.DistributedStrategy.no_such",
    ]

"""fluid.incubate.fleet.parameter_server.pslib: what of it is there, and what is refused."""

import sys

import flow
import pytest

HEAD = """
import fleetrun as paddle
from fleetrun.fluid.incubate.fleet.parameter_server.pslib import fleet
paddle.enable_static()
"""


def test_what_changes_no_number_is_accepted(run):
    done = run(HEAD + """
fleet.set_pull_local_thread_num(3)
fleet.print_table_stat(0)
fleet.confirm()
fleet.init(paddle.distributed.fleet.UserDefinedRoleMaker(
    current_id=0, role=paddle.distributed.fleet.Role.WORKER, worker_num=1, server_endpoints=["127.0.0.1:1"]))
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), {
    "scale_datanorm": -1, "datanorm_table": {"datanorm_operation": "summary", "datanorm_decay_rate": 0.999999}})
""")
    assert [line.partition(" has no")[0] for line in done.stderr.splitlines()] == [
        "fleetrun: warning: fleet.print_table_stat(0)", "fleetrun: warning: fleet.confirm"]


@pytest.mark.parametrize("call, told", [
    ("fleet.revert()", "fleet.revert: updates stay as they come"),
    ("fleet.clear_model()", "fleet.clear_model: no call empties tables"),
    ("fleet.clear_one_table(1)", "fleet.clear_model: no call empties tables"),
    ("fleet.shrink_dense_table(0.98, 11)", "fleet.shrink_dense_table(0.98): data_norm's sums"),
    ("fleet.load_one_table(0, 'saved')", "fleet.load_one_table: a save is loaded whole"),
    ("fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), {'scale_datanorm': 0.01})",
     "pslib's strategy['scale_datanorm'] = 0.01"),
    ("fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), "
     "{'datanorm_table': {'datanorm_decay_rate': 0.9}})", "datanorm_decay_rate=0.9"),
])
def test_what_would_change_numbers_is_refused(run, call, told):
    assert told in run(HEAD + call, expect=1).stderr


def test_servers_add_up_the_sums_of_data_norm(run):
    done = run("""
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
paddle.enable_static()
fleet.init(fleet.UserDefinedRoleMaker(current_id=0, role=fleet.Role.WORKER, worker_num=1,
                                      server_endpoints=["127.0.0.1:1"]))
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
x = paddle.static.data("x", [None, 3], "float32")
loss = paddle.mean(paddle.static.nn.fc(paddle.static.nn.data_norm(x, name="dn"), 1))
fleet.distributed_optimizer(paddle.optimizer.Adam(0.25), strategy).minimize(loss)
for entry in loss.program.training.plan.entries():
    print(entry.table)
""")
    rules = {line.split("'")[1]: line.rsplit(", ", 1)[-1] for line in done.stdout.splitlines()}
    assert {name for name, rule in rules.items() if rule == "summary"} == {
        "dn.batch_size", "dn.batch_sum", "dn.batch_square_sum"}
    assert len(rules) == 5


def test_trainers_load_a_model_into_the_servers(tmp_path, start):
    """By the names that pslib's daily jobs have for it."""
    from fleetrun_job import find_fleetrun

    flow.write(tmp_path, lines=40, after="""
    from fleetrun.fluid.incubate.fleet.utils.fleet_util import FleetUtil
    from fleetrun.fluid.incubate.fleet.parameter_server.pslib import fleet as pslib
    def ask():
        exe.infer_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[model.loss])
        return exe.last_pass.fetch_means
    if fleet.is_first_worker():
        fleet.save_persistables(exe, "model")
    fleet.barrier_worker()
    said = ask()
    util = FleetUtil("pslib")
    for load in (lambda: util.load_fleet_model("model"), lambda: pslib.init_server("model", mode=0)):
        fleet.barrier_worker()
        exe.train_from_dataset(paddle.static.default_main_program(), dataset)
        fleet.barrier_worker()
        assert ask() != said
        load()
        assert ask() == said
    print("came back", flush=True)""")
    for _ in range(2):
        job = start([find_fleetrun(), "--server_num=1", "--trainer_num=2", "--python", sys.executable,
                     "train.py", "1", "sync"])
        output, _ = job.communicate(timeout=flow.LIMIT)
        assert job.returncode == 0 and "came back" in output, output
        script = tmp_path / "train.py"
        text = script.read_text()
        script.write_text(text.replace("fleet.init_server()", "fleet.init_server('model', mode=0)"))

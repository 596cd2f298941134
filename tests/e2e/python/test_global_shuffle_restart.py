"""A trainer that is killed behind a global_shuffle: alone it cannot have its examples back, so that the job
starts again as a whole, at once and without a further restart."""

import json
import re

import pytest

from killed_trainers import LIFE, run

TRAIN = """
import json, os, signal, sys
import numpy
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

MODE, PLAN = sys.argv[1], json.loads(sys.argv[2])
paddle.enable_static()
fleet.init(is_collective=False)
ids = paddle.static.data(name="ids", shape=[None, 1], dtype="int64")
zero = paddle.ParamAttr(name="rows", initializer=paddle.nn.initializer.Constant(0.0))
rows = paddle.static.nn.sparse_embedding(ids, [100, 1], param_attr=zero)
weight = paddle.static.create_parameter(
    [1], "float32", default_initializer=paddle.nn.initializer.Constant(0.0))
loss = paddle.sum(rows + weight)
test = paddle.static.default_main_program().clone(for_test=True)
strategy = fleet.DistributedStrategy()
strategy.a_sync = MODE == "async"
fleet.distributed_optimizer(paddle.optimizer.SGD(learning_rate=1.0), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
""" + LIFE + """
with open(f"part-{rank}", "w") as file:
    file.write("".join(f"1 {key}\\n" for key in range(50 * rank, 50 * rank + 50)))
dataset = paddle.distributed.InMemoryDataset()
dataset.init(batch_size=5, thread_num=1, use_var=[ids], pipe_command="cat")
dataset.set_filelist([f"part-{rank}"])
dataset.load_into_memory()
dataset.global_shuffle(fleet)
now = 1
exe.train_from_dataset(paddle.static.default_main_program(), dataset, fetch_list=[loss], fetch_info=["loss"],
                       print_period=1)
fleet.barrier_worker()
if rank == 0:
    counts, = exe.run(test, feed={"ids": numpy.arange(100).reshape(-1, 1)}, fetch_list=[rows])
    with open("counts", "w") as file:
        json.dump(counts.ravel().tolist(), file)
fleet.barrier_worker()
fleet.stop_worker()
"""


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_all_start_again_where_one_that_is_alone_would_fail_each_time(tmp_path, mode):
    # The third life is that of the job as a whole.
    said = run(tmp_path, TRAIN, 1, [[1, 3]], [mode, json.dumps([[1, 3]])], lives=3, restarts=1)
    counts = json.loads((tmp_path / "counts").read_text())
    if mode == "async":
        assert counts == [-1.0] * 100, said
    else:
        assert all(count < 0 for count in counts), said
    together = (r"all processes are started again, because trainer 1 failed: attempt 2 "
                r"\(it was started again alone, and cannot go on without the others\)")
    assert len(re.findall(together, said)) == 1, said

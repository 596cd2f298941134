"""What a script finds in the scope between its steps, where parameters lie on servers."""

import re
import sys

import pytest

from flow import LIMIT
from fleetrun_job import find_fleetrun

TRAIN = """
import sys
import numpy
import paddle
import paddle.distributed.fleet as fleet

paddle.enable_static()
fleet.init(is_collective=False)
x = paddle.static.data(name="x", shape=[None, 1], dtype="float32")
first = paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(0.0))
loss = paddle.sum(paddle.static.nn.fc(x, 1, weight_attr=first, bias_attr=False))
strategy = fleet.DistributedStrategy()
strategy.a_sync = sys.argv[1] == "async"
fleet.distributed_optimizer(paddle.optimizer.SGD(1.0), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit(0)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
tensor = paddle.static.global_scope().find_var("w").get_tensor()
seen = []
for step in range(3):
    exe.run(feed={"x": numpy.ones([1, 1], "float32")}, fetch_list=[loss])
    seen.append(float(numpy.array(tensor)[0, 0]))
tensor.set(numpy.full([1, 1], 9, "float32"), paddle.CPUPlace())
print("seen", seen, numpy.array(tensor).tolist(), flush=True)
exe.run(feed={"x": numpy.ones([1, 1], "float32")}, fetch_list=[loss])
fleet.stop_worker()
print("at the end", numpy.array(tensor).tolist(), flush=True)
"""


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_parameter_has_its_value_after_the_step_before(tmp_path, start, mode):
    (tmp_path / "train.py").write_text(TRAIN)
    job = start([find_fleetrun(), "--compat=paddle", "--server_num=1", "--trainer_num=1", "--python",
                 sys.executable, "train.py", mode])
    output, _ = job.communicate(timeout=LIMIT)
    assert job.returncode == 0, output
    assert re.findall(r"seen (.*)", output) == ["[-1.0, -2.0, -3.0] [[9.0]]"], output
    assert "at the end [[-4.0]]" in output

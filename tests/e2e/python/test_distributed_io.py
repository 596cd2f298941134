"""paddle.distributed.io in one process: kept values, and an inference model with its rows."""


def test_kept_values_and_an_inference_model_come_back(run):
    run("""
import numpy as np
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
from fleetrun.distributed import io

paddle.enable_static()
fleet.init()
ids = paddle.static.data("ids", [None, 1], "int64")
rows = paddle.static.nn.sparse_embedding(ids, [100, 4])
out = paddle.nn.Linear(4, 1)(rows)
loss = paddle.mean(paddle.square(out - 1.0))
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1)).minimize(loss)
main = paddle.static.default_main_program()
exe = paddle.static.Executor()
exe.run(paddle.static.default_startup_program())
feed = {"ids": np.arange(6).reshape(6, 1)}
for step in range(3):
    exe.run(feed=feed, fetch_list=[loss])
scope = paddle.static.global_scope()
name = main.all_parameters()[1].name
kept = np.array(scope.find_var(name))
io.save_persistables(exe, "kept", main)
scope.find_var(name).set(kept + 1)
io.load_persistables(exe, "kept", main)
assert np.array_equal(np.array(scope.find_var(name)), kept)
assert io.is_persistable(main.all_parameters()[0]) and not io.is_persistable(out)
test = main.clone(for_test=True)
expected, = exe.run(test, feed=feed, fetch_list=[out])
fleet.save_inference_model(exe, "model", ["ids"], [out], main)
program, feeds, fetches = io.load_inference_model_distributed("model", exe)
assert feeds == ["ids"]
value, = exe.run(program, feed=feed, fetch_list=fetches)
assert np.array_equal(value, expected)
""")

"""A script that trains on day.txt and saves two models, and what it has computed with them."""

# wide/: its rows are in tables, `ids` has two in each row and `bag`, of a number of its own, the same two, so
# that their sums are equal. dense.pdmodel: one layer.
SCRIPT = """
import numpy as np
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
paddle.enable_static()
paddle.seed(3)
fleet.init(is_collective=True)
exe = paddle.static.Executor(paddle.CPUPlace())
x = paddle.static.data("x", [None, 2])
ids = paddle.static.data("ids", [None, 2], "int64")
bag = paddle.static.data("bag", [None, 1], "int64", lod_level=1)
label = paddle.static.data("label", [None, 1])
rows = paddle.ParamAttr(name="rows")
summed = paddle.sum(paddle.static.nn.sparse_embedding(ids, [100, 3], param_attr=rows), axis=1)
pooled = paddle.static.nn.sequence_pool(paddle.static.nn.sparse_embedding(bag, [100, 3], param_attr=rows), "sum")
hidden = paddle.nn.Linear(2, 3)(paddle.clip(x, min=0.0))
out = paddle.nn.functional.sigmoid(paddle.nn.Linear(6, 1)(paddle.concat([summed, hidden], axis=1)))
big = paddle.greater_than(out, paddle.full_like(out, 0.5))
loss = paddle.mean(paddle.square(out - label))
fleet.distributed_optimizer(paddle.optimizer.Adam(0.1)).minimize(loss)
exe.run(paddle.static.default_startup_program())
words = [line.split() for line in open("day.txt")]
fed = {"x": np.array([w[1:3] for w in words], dtype="float32"), "ids": np.array([w[4:6] for w in words], dtype="int64"),
       "label": np.array([w[-1:] for w in words], dtype="float32"),
       "bag": paddle.base.create_lod_tensor([[int(id) for id in w[7:9]] for w in words], [[2] * len(words)])}
for _ in range(20):
    exe.run(feed=fed, fetch_list=[loss])
test = paddle.static.default_main_program().clone(for_test=True)
got = exe.run(test, feed=fed, fetch_list=[out, summed, hidden, big])
np.savez("expected.npz", out=got[0], summed=got[1], hidden=got[2], big=got[3])
open("names", "w").write(" ".join(v.name for v in (out, summed, pooled, hidden, big, loss)))
fleet.save_inference_model(exe, "wide", ["x", "ids", "bag"], [out, summed, pooled, big])
paddle.static.save_inference_model("dense", [x], [hidden], exe)
"""
# x, two ids, the same two in the bag, label.
DAY = "".join(f"2 {x} {-x / 3} 2 {a} {a * a % 50} 2 {a} {a * a % 50} 1 {a % 2}\n"
              for a, x in enumerate([0.5, -1, 2, 0.25, -3, 7, 1e-3]))
SLOTS = "--slots=x:float32[2],ids:int64[2],bag:int64,label:float32[1]"

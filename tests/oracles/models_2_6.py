#!/usr/bin/env python3
"""Writes models of Paddle 2.6.2, an operator or a few each, with their feeds and what Paddle computed:
tests/golden/paddle_models/paddle_2.6.tar.xz holds the folder.

usage: models_2_6.py FOLDER, with an interpreter that has paddlepaddle 2.6.2
"""

import paddle, sys, os, numpy as np

paddle.enable_static()
import paddle.static as static
import paddle.nn.functional as F

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
r = np.random.RandomState(3)
X = r.rand(4, 6).astype("float32") * 2 - 1
I = r.randint(0, 10, (4, 3)).astype("int64")
P = r.rand(2, 3, 8, 8).astype("float32")
L = r.randint(0, 6, (4, 1)).astype("int64")


def raw(type, ins, outs, attrs, n=1, dtype="float32"):
    b = static.default_main_program().global_block()
    made = {
        k: [b.create_var(name=paddle.utils.unique_name.generate(type), dtype=d, shape=s)]
        for k, (d, s) in outs.items()
    }
    b.append_op(
        type=type,
        inputs={k: v if isinstance(v, list) else [v] for k, v in ins.items()},
        outputs=made,
        attrs=attrs,
    )
    return [v[0] for v in made.values()]


def x():
    return static.data("x", [-1, 6], "float32")


def i():
    return static.data("i", [-1, 3], "int64")


def p():
    return static.data("p", [-1, 3, 8, 8], "float32")


def l():
    return static.data("l", [-1, 1], "int64")


def w(shape, name=None):
    return static.create_parameter(
        shape, "float32", name, default_initializer=paddle.nn.initializer.Uniform(-0.5, 0.5)
    )


cases = {}


def case(name):
    def add(f):
        cases[name] = f
        return f

    return add


for a in "abs ceil cos erf exp floor reciprocal round sign sin square tanh acos asin atan".split():
    cases[a] = lambda a=a: getattr(paddle, a)(x())
for a in "log sqrt rsqrt log2 log10 log1p".split():
    cases[a] = lambda a=a: getattr(paddle, a)(paddle.exp(x()))
for a in (
    "elu gelu hardshrink hardsigmoid hardswish leaky_relu log_softmax log_sigmoid mish "
    "relu relu6 selu sigmoid silu softmax softplus softshrink softsign swish tanhshrink"
).split():
    cases["F_" + a] = lambda a=a: getattr(F, a)(x())
cases["elu2"] = lambda: F.elu(x(), 0.3)
cases["leaky2"] = lambda: F.leaky_relu(x(), 0.3)
cases["softplus2"] = lambda: F.softplus(x(), 2.0, 1.0)
cases["gelu2"] = lambda: F.gelu(x(), True)
cases["hardsig2"] = lambda: F.hardsigmoid(x(), 0.3, 0.1)
cases["prelu"] = lambda: static.nn.prelu(x(), "all")
cases["preluc"] = lambda: static.nn.prelu(p(), "channel")
for a in "add subtract multiply divide maximum minimum".split():
    cases["e_" + a] = lambda a=a: getattr(paddle, a)(
        x(), paddle.exp(paddle.roll(x(), 1, 1)) if False else paddle.exp(x())
    )
cases["add_axis"] = lambda: raw(
    "elementwise_add", {"X": p(), "Y": w([3])}, {"Out": ("float32", [-1, 3, 8, 8])}, {"axis": 1}
)
cases["mod"] = lambda: paddle.mod(i(), paddle.full([1], 3, "int64"))
cases["floordiv"] = lambda: paddle.floor_divide(i(), paddle.full([1], 3, "int64"))
for a in "sum mean max min prod".split():
    cases["r_" + a] = lambda a=a: getattr(paddle, a)(x(), 1)
    cases["rk_" + a] = lambda a=a: getattr(paddle, a)(x(), -1, keepdim=True)
    cases["ra_" + a] = lambda a=a: getattr(paddle, a)(x())
cases["any"] = lambda: paddle.any(x() > 0, 1)
cases["all"] = lambda: paddle.all(x() > 0, 1)
for a in "equal not_equal less_than less_equal greater_than greater_equal".split():
    cases[a] = lambda a=a: getattr(paddle, a)(i(), paddle.full([1], 4, "int64"))
for a in "logical_and logical_or logical_xor".split():
    cases[a] = lambda a=a: getattr(paddle, a)(x() > 0, x() > 0.5)
cases["logical_not"] = lambda: paddle.logical_not(x() > 0)
cases["matmul"] = lambda: paddle.matmul(x(), w([6, 5]))
cases["matmul_t"] = lambda: paddle.matmul(x(), w([5, 6]), transpose_y=True)
cases["matmul1"] = lambda: raw(
    "matmul",
    {"X": x(), "Y": w([5, 6])},
    {"Out": ("float32", [-1, 5])},
    {"transpose_X": False, "transpose_Y": True, "alpha": 0.5},
)
cases["bmm"] = lambda: paddle.bmm(paddle.reshape(x(), [-1, 2, 3]), paddle.reshape(x(), [-1, 3, 2]))
cases["dot"] = lambda: paddle.dot(x(), x())
cases["fc"] = lambda: static.nn.fc(x(), 4, activation="relu")
cases["fc3"] = lambda: static.nn.fc(p(), 4, num_flatten_dims=2)
cases["clip"] = lambda: paddle.clip(x(), -0.2, 0.3)
cases["pow"] = lambda: paddle.pow(x(), 2.0)
cases["scale"] = lambda: paddle.scale(x(), 2.0, 1.0, False)
cases["cumsum"] = lambda: paddle.cumsum(x(), 1)
cases["cumsum0"] = lambda: paddle.cumsum(x())
cases["logsumexp"] = lambda: paddle.logsumexp(x(), 1)
cases["add_n"] = lambda: paddle.add_n([x(), paddle.exp(x())])
cases["norm"] = lambda: F.normalize(x())
cases["pnorm"] = lambda: paddle.norm(x(), 2, 1)
cases["cos_sim"] = lambda: F.cosine_similarity(x(), paddle.exp(x()))
cases["cos_sim1"] = lambda: raw(
    "cos_sim",
    {"X": x(), "Y": paddle.exp(x())},
    {"Out": ("float32", [-1, 1]), "XNorm": ("float32", [-1, 1]), "YNorm": ("float32", [-1, 1])},
    {},
)[:1]
cases["mean1"] = lambda: raw("mean", {"X": x()}, {"Out": ("float32", [1])}, {})
cases["concat"] = lambda: paddle.concat([x(), paddle.exp(x())], 1)
cases["split"] = lambda: paddle.split(x(), 3, 1)
cases["split2"] = lambda: paddle.split(x(), [1, 2, 3], -1)
cases["stack"] = lambda: paddle.stack([x(), paddle.exp(x())], 1)
cases["unstack"] = lambda: paddle.unstack(x(), 1)
cases["reshape"] = lambda: paddle.reshape(x(), [-1, 2, 3])
cases["reshape0"] = lambda: paddle.reshape(p(), [0, -1])
cases["transpose"] = lambda: paddle.transpose(p(), [0, 2, 3, 1])
cases["squeeze"] = lambda: paddle.squeeze(paddle.unsqueeze(x(), 1), 1)
cases["unsqueeze"] = lambda: paddle.unsqueeze(x(), [1, 2])
cases["flatten"] = lambda: paddle.flatten(p(), 1, 2)
cases["flatten1"] = lambda: raw(
    "flatten2", {"X": p()}, {"Out": ("float32", [-1, 192]), "XShape": ("float32", [0])}, {"axis": 1}
)[:1]
cases["slice"] = lambda: x()[:, 1:4]
cases["slice1"] = lambda: x()[:, 2]
cases["sslice"] = lambda: x()[:, ::2]
cases["sslice2"] = lambda: x()[:, ::-1]
cases["expand"] = lambda: paddle.expand(paddle.unsqueeze(x(), 1), [-1, 3, 6])
cases["tile"] = lambda: paddle.tile(x(), [1, 2])
cases["expand1"] = lambda: raw("expand", {"X": x()}, {"Out": ("float32", [-1, 12])}, {"expand_times": [1, 2]})
cases["expand_as"] = lambda: paddle.expand_as(
    paddle.unsqueeze(x(), 1), paddle.reshape(paddle.tile(x(), [1, 2]), [-1, 2, 6])
)
cases["shape"] = lambda: paddle.shape(x())
cases["pad"] = lambda: raw(
    "pad", {"X": x()}, {"Out": ("float32", [-1, 9])}, {"paddings": [0, 0, 1, 2], "pad_value": 0.5}
)
cases["pad2d"] = lambda: raw(
    "pad2d", {"X": p()}, {"Out": ("float32", [-1, 3, 10, 10])}, {"paddings": [1, 1, 1, 1], "mode": "reflect"}
)
cases["argmax"] = lambda: paddle.argmax(x(), 1)
cases["argmin"] = lambda: paddle.argmin(x(), 1, keepdim=True)
cases["argsort"] = lambda: paddle.argsort(x(), 1, True)
cases["sort"] = lambda: paddle.sort(x(), 1)
cases["topk"] = lambda: paddle.topk(x(), 2)
cases["topk1"] = lambda: raw(
    "top_k", {"X": x()}, {"Out": ("float32", [-1, 2]), "Indices": ("int64", [-1, 2])}, {"k": 2}
)
cases["gather"] = lambda: paddle.gather(w([10, 3]), paddle.reshape(l(), [-1]))
cases["gather_nd"] = lambda: paddle.gather_nd(w([10, 3]), l())
cases["index_select"] = lambda: paddle.index_select(x(), paddle.reshape(l(), [-1]), 1)
cases["scatter"] = lambda: paddle.scatter(w([10, 6]), paddle.reshape(l(), [-1]), x(), overwrite=False)
cases["where"] = lambda: paddle.where(x() > 0, x(), paddle.exp(x()))
cases["one_hot"] = lambda: F.one_hot(paddle.reshape(l(), [-1]), 6)
cases["one_hot1"] = lambda: raw(
    "one_hot", {"X": l()}, {"Out": ("float32", [-1, 6])}, {"depth": 6, "dtype": 5}
)
cases["emb"] = lambda: F.embedding(i(), w([10, 4]))
cases["embp"] = lambda: F.embedding(i(), w([10, 4]), padding_idx=2)
cases["emb1"] = lambda: raw(
    "lookup_table", {"W": w([10, 4]), "Ids": l()}, {"Out": ("float32", [-1, 4])}, {"padding_idx": -1}
)
cases["conv"] = lambda: static.nn.conv2d(p(), 4, 3, 2, 1)
cases["convg"] = lambda: static.nn.conv2d(p(), 6, 3, 1, "SAME", groups=3)
cases["convt"] = lambda: static.nn.conv2d_transpose(p(), 4, filter_size=3, stride=2, padding=1)
cases["maxpool"] = lambda: F.max_pool2d(p(), 2, 2)
cases["avgpool"] = lambda: F.avg_pool2d(p(), 3, 2, 1)
cases["avgpool2"] = lambda: F.avg_pool2d(p(), 3, 2, 1, exclusive=False)
cases["gpool"] = lambda: F.adaptive_avg_pool2d(p(), 1)
cases["amax"] = lambda: F.adaptive_max_pool2d(p(), 2)
cases["gpool1"] = lambda: raw(
    "pool2d",
    {"X": p()},
    {"Out": ("float32", [-1, 3, 1, 1])},
    {"pooling_type": "avg", "ksize": [2, 2], "global_pooling": True},
)
cases["bn"] = lambda: static.nn.batch_norm(p(), is_test=True)
cases["bn2"] = lambda: static.nn.batch_norm(x(), is_test=True, act="relu")
cases["ln"] = lambda: static.nn.layer_norm(p(), begin_norm_axis=2)
cases["dropout"] = lambda: F.dropout(x(), 0.3, training=False)
cases["dropout1"] = lambda: F.dropout(x(), 0.3, training=False, mode="downscale_in_infer")
cases["ce"] = lambda: F.cross_entropy(x(), l(), reduction="none")
cases["ce1"] = lambda: raw(
    "cross_entropy", {"X": F.softmax(x()), "Label": l()}, {"Y": ("float32", [-1, 1])}, {"soft_label": False}
)
cases["ce2"] = lambda: F.cross_entropy(F.softmax(x()), l(), use_softmax=False)
cases["bce"] = lambda: F.binary_cross_entropy(F.sigmoid(x()), F.sigmoid(x()))
cases["bcel"] = lambda: F.binary_cross_entropy_with_logits(x(), F.sigmoid(x()))
cases["log_loss"] = lambda: F.log_loss(F.sigmoid(x()[:, 0:1]), F.sigmoid(x()[:, 1:2]))
cases["huber"] = lambda: raw(
    "huber_loss",
    {"X": x()[:, 0:1], "Y": x()[:, 1:2]},
    {"Out": ("float32", [-1, 1]), "Residual": ("float32", [-1, 1])},
    {"delta": 0.3},
)[:1]
cases["mse"] = lambda: F.mse_loss(x(), paddle.exp(x()))
cases["sq"] = lambda: F.square_error_cost(x(), paddle.exp(x()))
cases["acc"] = lambda: static.accuracy(F.softmax(x()), l(), k=2)
cases["auc"] = lambda: static.auc(F.softmax(x()[:, 0:2]), paddle.cast(l() > 2, "int64"))[0]
cases["cast"] = lambda: paddle.cast(x(), "int64")
cases["full"] = lambda: x() + paddle.full([1], 2.5)
cases["full_like"] = lambda: paddle.full_like(x(), 3.0)
cases["zeros_like"] = lambda: paddle.zeros_like(x())
cases["assign"] = lambda: paddle.assign(x())
cases["assign_value"] = lambda: x() + paddle.assign(np.arange(6).astype("float32"))
cases["assign_int"] = lambda: i() + paddle.assign(np.arange(3).astype("int64"))
cases["inc"] = lambda: paddle.increment(paddle.full([1], 2.0)) + x()
cases["bsl"] = lambda: raw(
    "fill_constant_batch_size_like",
    {"Input": x()},
    {"Out": ("float32", [-1, 2])},
    {"shape": [-1, 2], "value": 0.5, "dtype": 5},
)
feeds = {"x": X, "i": I, "p": P, "l": L}
exe = static.Executor(paddle.CPUPlace())
for name, f in cases.items():
    main, startup = static.Program(), static.Program()
    try:
        with (
            static.scope_guard(static.Scope()),
            static.program_guard(main, startup),
            paddle.utils.unique_name.guard(),
        ):
            main.random_seed = startup.random_seed = 7
            o = f()
            o = list(o) if isinstance(o, (list, tuple)) else [o]
            exe.run(startup)
            used = [v for v in main.list_vars() if v.name in feeds and not v.persistable]
            static.save_inference_model(f"{out}/{name}", used, o, exe, program=main)
            prog, fd, ft = static.load_inference_model(f"{out}/{name}", exe)
            vals = exe.run(prog, feed={k: feeds[k] for k in fd}, fetch_list=ft)
        np.savez(f"{out}/{name}.npz", *[np.asarray(v) for v in vals])
    except Exception as e:
        print("peer", name, type(e).__name__, str(e).strip().splitlines()[-1][:200])
np.savez(f"{out}/feeds.npz", **feeds)
print(len(cases))

# A program that is to be trained, as it is before minimize().
main, startup = static.Program(), static.Program()
with static.program_guard(main, startup), paddle.utils.unique_name.guard():
    at = paddle.nn.initializer.Constant
    ids, y = static.data("ids", [-1, 1], "int64"), static.data("y", [-1, 1], "int64")
    wide = static.data("x", [-1, 8], "float32")
    rows = static.nn.embedding(
        ids, size=[20, 4], is_sparse=True, param_attr=paddle.ParamAttr(name="emb", initializer=at(0.05))
    )
    both = paddle.concat([wide, paddle.reshape(rows, [-1, 4])], axis=1)
    hidden = static.nn.fc(both, 16, activation="relu", weight_attr=paddle.ParamAttr(initializer=at(0.1)))
    hidden = static.nn.batch_norm(hidden)
    guess = static.nn.fc(hidden, 2, activation="softmax", weight_attr=paddle.ParamAttr(initializer=at(0.2)))
    loss = paddle.mean(paddle.nn.functional.cross_entropy(guess, y, use_softmax=False))
    static.accuracy(guess, y)
for name, program in (("main", main), ("startup", startup)):
    with open(f"{out}/training_{name}", "wb") as file:
        file.write(program.desc.serialize_to_string())

#!/usr/bin/env python3
"""Writes models of Paddle 1.8.5, an operator or a few each, with their feeds and what Paddle computed:
tests/golden/paddle_models/paddle_1.8.tar.xz holds the folder.

usage: models_1_8.py FOLDER, with an interpreter that has paddlepaddle 1.8.5
"""

import sys, os, numpy as np
import paddle.fluid as fluid

L = fluid.layers
out = sys.argv[1]
os.makedirs(out, exist_ok=True)
r = np.random.RandomState(3)
X = r.rand(4, 6).astype("float32") * 2 - 1
I = r.randint(0, 10, (4, 1)).astype("int64")
LB = r.randint(0, 6, (4, 1)).astype("int64")
S = r.randint(0, 10, (9, 1)).astype("int64")
LEN = [2, 3, 1, 3]
P = r.rand(2, 3, 8, 8).astype("float32")
Q = r.rand(9, 6).astype("float32")


def x():
    return L.data("x", [6])


def i():
    return L.data("i", [1], dtype="int64")


def l():
    return L.data("l", [1], dtype="int64")


def s():
    return L.data("s", [1], dtype="int64", lod_level=1)


def p():
    return L.data("p", [3, 8, 8])


def q():
    return L.data("q", [6], lod_level=1)


emb = lambda v: L.embedding(v, [10, 8])
cases = {}
for a in (
    "abs ceil cos exp floor reciprocal round sin square tanh sigmoid relu softsign softplus logsigmoid "
    "tanh_shrink sign elu relu6 leaky_relu hard_sigmoid hard_swish swish brelu softmax gelu selu"
).split():
    cases[a] = lambda a=a: getattr(L, a)(x())
for a in "add sub mul div max min".split():
    cases["e_" + a] = lambda a=a: getattr(L, "elementwise_" + a)(x(), L.exp(x()))
cases["e_axis"] = lambda: L.elementwise_add(p(), L.create_parameter([3], "float32"), axis=1)
for a in "sum mean max min prod".split():
    cases["r_" + a] = lambda a=a: getattr(L, "reduce_" + a)(x(), dim=1, keep_dim=True)
    cases["ra_" + a] = lambda a=a: getattr(L, "reduce_" + a)(x())
cases["fc"] = lambda: L.fc(x(), 4, act="relu")
cases["fc2"] = lambda: L.fc([x(), L.exp(x())], 4)
cases["matmul"] = lambda: L.matmul(x(), L.create_parameter([5, 6], "float32"), transpose_y=True, alpha=0.5)
cases["mul"] = lambda: L.mul(x(), L.create_parameter([6, 3], "float32"))
cases["emb"] = lambda: emb(i())
cases["embp"] = lambda: L.embedding(i(), [10, 8], padding_idx=2, is_sparse=True)
cases["embs"] = lambda: L.sequence_pool(emb(s()), "sum")
for a in "sum average sqrt max last first".split():
    cases["sp_" + a] = lambda a=a: L.sequence_pool(emb(s()), a)
cases["sconv"] = lambda: L.sequence_pool(L.sequence_conv(emb(s()), 5, 3, act="tanh"), "max")
cases["ssoft"] = lambda: L.sequence_pool(L.sequence_softmax(L.fc(emb(s()), 1)), "max")
cases["gru"] = lambda: L.sequence_pool(L.dynamic_gru(L.fc(emb(s()), 12), 4), "last")
cases["lstm"] = lambda: [
    L.sequence_pool(v, "last") for v in L.dynamic_lstm(L.fc(emb(s()), 16), 16, use_peepholes=False)
]
cases["lstmp"] = lambda: L.sequence_pool(
    L.dynamic_lstm(L.fc(emb(s()), 16), 16, use_peepholes=True, is_reverse=True)[0], "first"
)
cases["sexpand"] = lambda: L.sequence_pool(L.sequence_expand(x(), emb(s())), "sum")
cases["seqconcat"] = lambda: L.sequence_pool(L.sequence_concat([q(), q()]), "average")
cases["conv"] = lambda: L.conv2d(p(), 4, 3, 2, 1, act="relu")
cases["pool"] = lambda: L.pool2d(p(), 2, "max", 2)
cases["pool2"] = lambda: L.pool2d(p(), 3, "avg", 2, 1)
cases["gpool"] = lambda: L.pool2d(p(), pool_type="avg", global_pooling=True)
cases["bn"] = lambda: L.batch_norm(p(), is_test=True)
cases["ln"] = lambda: L.layer_norm(p(), begin_norm_axis=2)
cases["convt"] = lambda: L.conv2d_transpose(p(), 4, filter_size=3, stride=2, padding=1)
cases["dropout"] = lambda: L.dropout(x(), 0.3, is_test=True)
cases["ce"] = lambda: L.cross_entropy(L.softmax(x()), l())
cases["sce"] = lambda: L.softmax_with_cross_entropy(x(), l())
cases["sig"] = lambda: L.sigmoid_cross_entropy_with_logits(x(), L.sigmoid(x()))
cases["cos"] = lambda: L.cos_sim(x(), L.exp(x()))
cases["mean"] = lambda: L.mean(x())
cases["acc"] = lambda: L.accuracy(L.softmax(x()), l(), k=2)
cases["auc"] = lambda: L.auc(
    L.softmax(L.fc(x(), 2)), L.cast(L.greater_than(l(), L.fill_constant([1], "int64", 2)), "int64")
)[0]
cases["sec"] = lambda: L.square_error_cost(x(), L.exp(x()))
cases["logloss"] = lambda: L.log_loss(L.sigmoid(L.fc(x(), 1)), L.sigmoid(L.fc(x(), 1)))
cases["huber"] = lambda: L.huber_loss(L.fc(x(), 1), L.fc(x(), 1), 0.3)
cases["topk"] = lambda: L.topk(x(), 2)
cases["concat"] = lambda: L.concat([x(), L.exp(x())], 1)
cases["split"] = lambda: L.split(x(), 3, 1)
cases["reshape"] = lambda: L.reshape(x(), [-1, 2, 3])
cases["transpose"] = lambda: L.transpose(p(), [0, 2, 3, 1])
cases["squeeze"] = lambda: L.squeeze(L.unsqueeze(x(), [1]), [1])
cases["flatten"] = lambda: L.flatten(p(), 1)
cases["slice"] = lambda: L.slice(x(), [1], [1], [4])
cases["expand"] = lambda: L.expand(x(), [1, 2])
cases["gather"] = lambda: L.gather(
    x(), L.reshape(L.cast(L.clip(L.cast(i(), "float32"), 0, 3), "int64"), [-1])
)
cases["one_hot"] = lambda: L.one_hot(l(), 6)
cases["stack"] = lambda: L.stack([x(), L.exp(x())], 1)
cases["argmax"] = lambda: L.argmax(x(), 1)
cases["argsort"] = lambda: L.argsort(x(), 1)
cases["scale"] = lambda: L.scale(x(), 2.0, 1.0, False)
cases["sums"] = lambda: L.sum([x(), L.exp(x())])
cases["clip"] = lambda: L.clip(x(), -0.2, 0.3)
cases["cast"] = lambda: L.cast(x(), "int64")
cases["l2"] = lambda: L.l2_normalize(x(), 1)
cases["pow"] = lambda: L.pow(x(), 2.0)
cases["pad"] = lambda: L.pad(x(), [0, 0, 1, 2], 0.5)
cases["bsl"] = lambda: L.fill_constant_batch_size_like(x(), [-1, 2], "float32", 0.5)
cases["cmp"] = lambda: L.cast(L.less_than(x(), L.exp(L.scale(x(), 2.0))), "float32")
cases["zeros"] = lambda: L.elementwise_add(x(), L.zeros([1], "float32"))
cases["pad2d"] = lambda: L.pad2d(p(), [1, 1, 1, 1], "reflect")
cases["cumsum"] = lambda: L.cumsum(x(), 1)
cases["prelu"] = lambda: L.prelu(p(), "channel")
cases["increment"] = lambda: L.increment(L.fill_constant([1], "float32", 2.0))
cases["seq_reshape"] = lambda: L.sequence_pool(L.sequence_reshape(q(), 3), "sum")
cases["im"] = lambda: L.resize_bilinear(p(), [4, 4])
cases["near"] = lambda: L.resize_nearest(p(), [4, 4])
cases["lrn"] = lambda: L.lrn(p())
cases["unstack"] = lambda: L.unstack(x(), 1)
cases["maxout"] = lambda: L.maxout(L.conv2d(p(), 4, 3), 2)
cases["crf"] = lambda: (
    L.crf_decoding(L.fc(emb(s()), 5), fluid.ParamAttr(name="crf")) if False else L.fc(x(), 2)
)
feeds = {"x": X, "i": I, "l": LB, "s": (S, LEN), "p": P, "q": (Q, LEN)}
exe = fluid.Executor(fluid.CPUPlace())


def fed(k):
    v = feeds[k]
    return fluid.create_lod_tensor(v[0], [v[1]], fluid.CPUPlace()) if isinstance(v, tuple) else v


for n, (name, f) in enumerate(cases.items()):
    main, startup = fluid.Program(), fluid.Program()
    try:
        with (
            fluid.scope_guard(fluid.core.Scope()),
            fluid.program_guard(main, startup),
            fluid.unique_name.guard(),
        ):
            main.random_seed = startup.random_seed = 7
            o = f()
            o = list(o) if isinstance(o, (list, tuple)) else [o]
            exe.run(startup)
            used = [v for v in dict.fromkeys(v.name for v in main.list_vars() if v.name in feeds)]
            fluid.io.save_inference_model(
                f"{out}/{name}",
                used,
                o,
                exe,
                main,
                None,
                "params" if n % 2 and main.all_parameters() else None,
            )
            prog, fd, ft = fluid.io.load_inference_model(
                f"{out}/{name}", exe, None, "params" if n % 2 and main.all_parameters() else None
            )
            vals = exe.run(prog, feed={k: fed(k) for k in fd}, fetch_list=ft)
        np.savez(f"{out}/{name}.npz", *[np.asarray(v) for v in vals])
    except Exception as e:
        print("peer", name, type(e).__name__, str(e).strip().splitlines()[-1][:200])
np.savez(
    f"{out}/feeds.npz",
    lengths=np.array(LEN),
    **{k: v[0] if isinstance(v, tuple) else v for k, v in feeds.items()},
)
print(len(cases))

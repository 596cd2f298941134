#!/usr/bin/env python3
"""The losses of the same programs, from the same parameters over the same batches,
in real Paddle and in fleetrun.

usage: python tests/oracles/loss_curves.py compare PYTHON    runs both, prints the largest difference of each
                                                             curve, and ends with 1 when one is above 0.0001
       python tests/oracles/loss_curves.py record PYTHON     writes tests/golden/training/loss_curves.json
       python tests/oracles/loss_curves.py run MODULE        the curves of `paddle` or `fleetrun` as one line
                                                             of JSON

PYTHON is an interpreter with paddlepaddle==2.6.2, such as the one that scripts/bench setup-peers makes; this
one has fleetrun. The programs are the network of examples/mlp and the wide & deep of examples/wide_and_deep,
each with SGD, Adagrad and Adam, 50 steps (the tables of Adam with dense gradients: for sparse ones Paddle
2.6.2 corrects the bias of a step with the factors of the next); tests/e2e/python/test_loss_curves.py compares
fleetrun's with those recorded.
"""

import importlib
import json
import pathlib
import subprocess
import sys

import name_cases
import numpy

STEPS = 50
BATCH = 32
MOST = 1e-4
GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "training" / "loss_curves.json"
OPTIMIZERS = {"sgd": ("SGD", {"learning_rate": 0.5}), "adagrad": ("Adagrad", {"learning_rate": 0.05}),
              "adam": ("Adam", {"learning_rate": 0.003})}
SLOTS, IDS, DENSE = 5, 40, 3


def mlp(paddle, _):
    """Two hidden layers, as in examples/mlp."""
    functional = paddle.nn.functional
    x, y = paddle.static.data("x", [None, 32], "float32"), paddle.static.data("y", [None, 1], "int64")
    layer = functional.relu(paddle.nn.Linear(32, 128)(x))
    layer = functional.relu(paddle.nn.Linear(128, 128)(layer))
    return paddle.mean(functional.cross_entropy(paddle.nn.Linear(128, 2)(layer), y))


def mlp_batch(numbers):
    """Points on two sides of a curved surface."""
    x = numbers.normal(size=(BATCH, 32)).astype("float32")
    return {"x": x, "y": (x[:, :1] * x[:, 1:2] + x[:, 2:3] > 0).astype("int64")}


def wide_and_deep(paddle, is_sparse):
    """A weight for each id, and a network over embeddings and numbers, as in examples/wide_and_deep."""
    dense = paddle.static.data("dense", [None, DENSE], "float32")
    ids = [paddle.static.data(f"C{slot}", [None, 1], "int64") for slot in range(SLOTS)]
    label = paddle.static.data("label", [None, 1], "int64")

    def rows(slot, table, width):
        return paddle.reshape(paddle.static.nn.embedding(
            slot, [IDS, width], is_sparse=is_sparse, param_attr=paddle.ParamAttr(name=table)), [-1, width])

    weights = paddle.concat([rows(slot, "wide", 1) for slot in ids], axis=1)
    wide = paddle.add(paddle.sum(weights, axis=1, keepdim=True), paddle.nn.Linear(DENSE, 1)(dense))
    layer, width = paddle.concat([*(rows(slot, "deep", 8) for slot in ids), dense], axis=1), 8 * SLOTS + DENSE
    for size in (64, 32):
        layer = paddle.nn.functional.relu(paddle.nn.Linear(width, size)(layer))
        width = size
    prediction = paddle.nn.functional.sigmoid(paddle.add(wide, paddle.nn.Linear(width, 1)(layer)))
    return paddle.mean(paddle.nn.functional.log_loss(prediction, paddle.cast(label, "float32")))


def wide_and_deep_batch(numbers):
    """Ids of which small ones come often; the label hangs on the first and on a number."""
    ids = numpy.minimum(numbers.geometric(0.1, size=(BATCH, SLOTS)), IDS) - 1
    dense = numbers.uniform(size=(BATCH, DENSE)).astype("float32")
    label = ((ids[:, :1] < 6) + dense[:, :1] > 0.8).astype("int64")
    return {"dense": dense, "label": label,
            **{f"C{slot}": ids[:, slot:slot + 1].astype("int64") for slot in range(SLOTS)}}


PROGRAMS = {"mlp": (mlp, mlp_batch), "wide_and_deep": (wide_and_deep, wide_and_deep_batch)}


def curve(paddle, program, batch, optimizer, arguments):
    """The losses of all steps."""
    with paddle.utils.unique_name.guard():
        net = name_cases.Net(paddle)
        with paddle.static.program_guard(net.main, net.startup), paddle.static.scope_guard(net.scope):
            loss = program(paddle, optimizer != "Adam")
            getattr(paddle.optimizer, optimizer)(**arguments).minimize(loss)
            for parameter in net.main.all_parameters():
                # Weights that keep the size of what goes through them.
                values = name_cases.values_of(parameter.name, parameter.shape)
                scale = values.shape[0] ** -0.5 if values.ndim > 1 else 0.0
                net.given[parameter.name] = (values * scale).astype("float32")
            net.start()
            numbers = numpy.random.default_rng(1)
            return [float(f"{numpy.asarray(net.run([loss], **batch(numbers))[0]).item():.9g}")
                    for _ in range(STEPS)]


def curves(paddle):
    """{"mlp adam": losses, …}"""
    return {f"{name} {short}": curve(paddle, program, batch, *OPTIMIZERS[short])
            for name, (program, batch) in PROGRAMS.items() for short in OPTIMIZERS}


def of(python, module):
    """The curves that another interpreter gets with a module."""
    done = subprocess.run([python, __file__, "run", module], text=True, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"loss_curves: error: {python} ended with {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def compare(ours, theirs):
    """Prints the largest difference of each curve; whether all are small."""
    small = True
    for name, losses in theirs.items():
        apart = max(abs(one - other) for one, other in zip(ours[name], losses, strict=True))
        small = small and apart <= MOST
        print(f"{name}: {losses[0]:.4f} to {losses[-1]:.4f} in {len(losses)} steps, "
              f"at most {apart:.2g} apart")
    return small


def main(words):
    if len(words) != 2 or words[0] not in ("compare", "record", "run"):
        raise SystemExit(__doc__)
    if words[0] == "run":
        module = importlib.import_module(words[1])
        module.enable_static()
        print(json.dumps(curves(module)))
    elif words[0] == "record":
        lines = [f"{json.dumps(name)}: {json.dumps(losses)}"
                 for name, losses in of(words[1], "paddle").items()]
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    else:
        return 0 if compare(of(sys.executable, "fleetrun"), of(words[1], "paddle")) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

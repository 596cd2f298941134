"""Records what real Paddle's optimizers do to a dense and to a looked-up parameter:
steps.json beside this file.

usage: python record.py    (an interpreter with paddlepaddle==2.6.2)

The net is one embedding (rows of width 2, by ids), times an input, times a dense weight, summed up; ids,
inputs and first values (all rows FIRST) are in the file too, so that a reader of it trains the same. Ftrl and
DecayedAdagrad have no class in 2.6.2: their operators are called. Ids rise, because 2.6.2's momentum finds
rows by bisection in the order of the batch, and misses some otherwise; Adam over rows is left out, because
2.6.2 takes the bias correction of the step after. And what its learning rate schedules say, epoch by epoch:
schedules.json.
"""

import json
import pathlib
import sys

import numpy
import paddle

paddle.enable_static()

STEPS = 6
IDS = [[0, 2], [0, 1], [2, 2], [1, 3], [0, 2], [1, 3]]
FIRST = 0.5
WEIGHT = [0.5, -1.5]
INPUTS = [[[0.5, 1.0], [-1.0, 2.0]], [[1.5, -0.5], [0.25, 0.75]], [[-0.25, 0.5], [1.0, 1.0]],
          [[2.0, -1.0], [0.5, -0.5]], [[1.0, 0.25], [-0.75, 1.25]], [[0.125, -2.0], [1.0, -1.0]]]


def cases():
    """{name: (class, arguments, is_sparse)}."""
    l2, l1 = {"weight_decay": ["L2Decay", 0.05]}, {"weight_decay": ["L1Decay", 0.05]}
    made = {}
    for is_sparse in (False, True):
        suffix = "_rows" if is_sparse else ""
        made |= {
            "sgd" + suffix: ("SGD", {"learning_rate": 0.1}, is_sparse),
            "sgd_l2" + suffix: ("SGD", {"learning_rate": 0.1, **l2}, is_sparse),
            "sgd_l1" + suffix: ("SGD", {"learning_rate": 0.1, **l1}, is_sparse),
            "momentum" + suffix: ("Momentum", {"learning_rate": 0.1, "momentum": 0.8}, is_sparse),
            "nesterov" + suffix: ("Momentum", {"learning_rate": 0.1, "momentum": 0.8, "use_nesterov": True},
                                  is_sparse),
            "adagrad" + suffix: ("Adagrad", {"learning_rate": 0.1, "initial_accumulator_value": 0.25},
                                 is_sparse),
            "adam" + suffix: ("Adam", {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.95}, is_sparse),
            "adam_l2" + suffix: ("Adam", {"learning_rate": 0.1, **l2}, is_sparse),
            "adam_lazy" + suffix: ("Adam", {"learning_rate": 0.1, "lazy_mode": True}, is_sparse),
            "ftrl" + suffix: ("Ftrl", {"learning_rate": 0.1, "l1": 0.05, "l2": 0.1}, is_sparse),
        }
    made |= {
        "adamw": ("AdamW", {"learning_rate": 0.1, "weight_decay": 0.2}, False),
        "adamax": ("Adamax", {"learning_rate": 0.1, "beta1": 0.8}, False),
        "adadelta": ("Adadelta", {"learning_rate": 0.5, "epsilon": 1e-2, "rho": 0.8}, False),
        "lamb": ("Lamb", {"learning_rate": 0.1, "lamb_weight_decay": 0.1}, False),
        "lamb_plain": ("Lamb", {"learning_rate": 0.1, "lamb_weight_decay": 0.0}, False),
        "lamb_adapting": ("Lamb", {"learning_rate": 0.1, "lamb_weight_decay": 0.0, "always_adapt": True},
                          False),
        "decayed_adagrad": ("DecayedAdagrad", {"learning_rate": 0.1, "decay": 0.8, "epsilon": 1e-3}, False),
        "lars": ("LarsMomentum", {"learning_rate": 2.0, "momentum": 0.8, "lars_coeff": 0.05,
                                  "lars_weight_decay": 0.1, "epsilon": 1e-3}, False),
        "lars_excluding": ("LarsMomentum", {"learning_rate": 0.1, "momentum": 0.8, "lars_coeff": 0.5,
                                            "exclude_from_weight_decay": ["row"]}, False),
    }
    return {name: case for name, case in made.items() if name not in ("adam_rows", "adam_lazy_rows")}


def minimize(loss, kind, arguments):
    """Real Paddle's optimizer of this name; for Ftrl and DecayedAdagrad its operator."""
    arguments = dict(arguments)
    if isinstance(arguments.get("weight_decay"), list):
        name, coefficient = arguments["weight_decay"]
        arguments["weight_decay"] = getattr(paddle.regularizer, name)(coefficient)
    if kind == "LarsMomentum":
        paddle.incubate.optimizer.LarsMomentumOptimizer(**arguments).minimize(loss)
        return
    if kind not in ("Ftrl", "DecayedAdagrad"):
        getattr(paddle.optimizer, kind)(**arguments).minimize(loss)
        return
    block = paddle.static.default_main_program().global_block()
    rate = paddle.static.create_global_var([1], arguments["learning_rate"], "float32", persistable=True)
    for parameter, gradient in paddle.static.append_backward(loss):
        states = [paddle.static.create_global_var(list(parameter.shape), 0.0, "float32", persistable=True)
                  for _ in "nz"]
        if kind == "DecayedAdagrad":
            block.append_op(type="decayed_adagrad", inputs={"Param": parameter, "Grad": gradient,
                                                            "Moment": states[0], "LearningRate": rate},
                            outputs={"ParamOut": parameter, "MomentOut": states[0]},
                            attrs={"decay": arguments["decay"], "epsilon": arguments["epsilon"]})
            continue
        block.append_op(type="ftrl", inputs={"Param": parameter, "Grad": gradient,
                                             "SquaredAccumulator": states[0],
                                             "LinearAccumulator": states[1], "LearningRate": rate},
                        outputs={"ParamOut": parameter, "SquaredAccumOut": states[0],
                                 "LinearAccumOut": states[1]},
                        attrs={"l1": arguments["l1"], "l2": arguments["l2"], "lr_power": -0.5})


def train(kind, arguments, is_sparse):
    """(rows, weight) after each step."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    scope = paddle.static.Scope()
    values = []
    with paddle.static.program_guard(main, startup), paddle.static.scope_guard(
            scope), paddle.utils.unique_name.guard():
        ids = paddle.static.data("ids", [None], "int64")
        x = paddle.static.data("x", [None, 2], "float32")
        assign = lambda array: paddle.nn.initializer.Assign(numpy.array(array, dtype="float32"))  # noqa: E731
        rows = paddle.nn.Embedding(4, 2, sparse=is_sparse,
                                   weight_attr=paddle.ParamAttr(name="rows",
                                                                initializer=assign([[FIRST] * 2] * 4)))(ids)
        weight = paddle.create_parameter([2], "float32",
                                         attr=paddle.ParamAttr(name="weight", initializer=assign(WEIGHT)))
        loss = paddle.sum(rows * x * weight)
        minimize(loss, kind, arguments)
        executor = paddle.static.Executor(paddle.CPUPlace())
        executor.run(startup)
        for step in range(STEPS):
            executor.run(main, feed={"ids": numpy.array(IDS[step]),
                                     "x": numpy.array(INPUTS[step], dtype="float32")})
            values.append({name: numpy.array(scope.find_var(name).get_tensor()).round(7).astype(
                "float64").round(7).tolist()
                           for name in ("rows", "weight")})
    return values


SCHEDULES = [
    ["NoamDecay", {"d_model": 64, "warmup_steps": 5, "learning_rate": 0.5}],
    ["PiecewiseDecay", {"boundaries": [2, 5, 9], "values": [0.1, 0.05, 0.01, 0.001]}],
    ["NaturalExpDecay", {"learning_rate": 0.5, "gamma": 0.1}],
    ["InverseTimeDecay", {"learning_rate": 0.5, "gamma": 0.1}],
    ["ExponentialDecay", {"learning_rate": 0.5, "gamma": 0.9}],
    ["PolynomialDecay", {"learning_rate": 0.5, "decay_steps": 6, "end_lr": 0.01, "power": 2.0}],
    ["PolynomialDecay", {"learning_rate": 0.5, "decay_steps": 4, "cycle": True}],
    ["LinearWarmup", {"learning_rate": 0.5, "warmup_steps": 4, "start_lr": 0.0, "end_lr": 0.5}],
    ["MultiStepDecay", {"learning_rate": 0.5, "milestones": [3, 7], "gamma": 0.8}],
    ["StepDecay", {"learning_rate": 0.5, "step_size": 3, "gamma": 0.8}],
    ["CosineAnnealingDecay", {"learning_rate": 0.5, "T_max": 6, "eta_min": 0.1}],
    ["CosineAnnealingWarmRestarts", {"learning_rate": 0.5, "T_0": 2, "T_mult": 2, "eta_min": 0.1}],
    ["CosineAnnealingWarmRestarts", {"learning_rate": 0.5, "T_0": 5}],
    ["LinearLR", {"learning_rate": 0.5, "total_steps": 6, "start_factor": 0.25, "end_factor": 0.75}],
    ["OneCycleLR", {"max_learning_rate": 0.5, "total_steps": 14}],
    ["OneCycleLR", {"max_learning_rate": 0.5, "total_steps": 16, "phase_pct": 0.4, "three_phase": True,
                    "anneal_strategy": "linear"}],
    ["CyclicLR", {"base_learning_rate": 0.1, "max_learning_rate": 0.5, "step_size_up": 3,
                  "step_size_down": 2}],
    ["CyclicLR", {"base_learning_rate": 0.1, "max_learning_rate": 0.5, "step_size_up": 2,
                  "mode": "triangular2"}],
    ["CyclicLR", {"base_learning_rate": 0.1, "max_learning_rate": 0.5, "step_size_up": 2,
                  "mode": "exp_range", "exp_gamma": 0.9}],
    ["ReduceOnPlateau", {"learning_rate": 0.5, "patience": 1, "factor": 0.5, "cooldown": 1}],
]
# What ReduceOnPlateau is told, step by step.
METRICS = [1.0, 0.9, 0.9, 0.9, 0.95, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8]


def write(name, values):
    """One list element or key to a line."""
    items = ([json.dumps(value) for value in values] if isinstance(values, list)
             else [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in values.items()])
    brackets = "[]" if isinstance(values, list) else "{}"
    text = brackets[0] + "\n" + ",\n".join(items) + "\n" + brackets[1] + "\n"
    pathlib.Path(__file__).with_name(name).write_text(text, encoding="utf-8")


def rates(name, arguments):
    """The first 12 values of a schedule."""
    schedule = getattr(paddle.optimizer.lr, name)(**arguments)
    values = []
    for metric in METRICS:
        values.append(schedule())
        schedule.step(*([metric] if name == "ReduceOnPlateau" else []))
    return values


def main():
    found = {"paddle": paddle.__version__, "ids": IDS, "first": FIRST, "weight": WEIGHT, "inputs": INPUTS}
    for name, (kind, arguments, is_sparse) in cases().items():
        found[name] = {"optimizer": kind, "arguments": arguments, "is_sparse": is_sparse,
                       "steps": train(kind, arguments, is_sparse)}
    write("steps.json", found)
    write("schedules.json", [[name, arguments, rates(name, arguments)] for name, arguments in SCHEDULES])
    print(f"{len(cases())} optimizers, {len(SCHEDULES)} schedules", file=sys.stderr)


main()

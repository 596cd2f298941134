#!/usr/bin/env python3
"""Trains tables on servers with every schedule of the learning rate and every rule, dense and sparse, and
compares each parameter with what one process makes of it.

usage: python tests/oracles/table_schedules.py [--mode MODE]… [--cells N] [--seed N]

--mode: async, half_async, sync, geo; without it all. --cells: so many pairs of a schedule and a rule, drawn
by --seed so that each schedule and each rule is among them; without it all. Exits 1 when one differs.
"""

import argparse
import itertools
import math
import random
import socket
import sys

import numpy as np

import fleetrun as paddle
from fleetrun import _native

STEPS = 7
# What ReduceOnPlateau is told.
METRICS = [1.0, 0.9, 0.9, 0.95, 0.95, 0.8, 0.8]

LR = paddle.optimizer.lr
LAYERS = paddle.fluid.layers
SCHEDULES = {
    "NoamDecay": lambda: LR.NoamDecay(64, 3, 2.0),
    "PiecewiseDecay": lambda: LR.PiecewiseDecay([2, 4], [0.4, 0.2, 0.1]),
    "NaturalExpDecay": lambda: LR.NaturalExpDecay(0.4, 0.2),
    "InverseTimeDecay": lambda: LR.InverseTimeDecay(0.4, 0.3),
    "PolynomialDecay": lambda: LR.PolynomialDecay(0.4, 5, 0.05, 2.0),
    "PolynomialDecay, cycle": lambda: LR.PolynomialDecay(0.4, 3, 0.05, cycle=True),
    "LinearWarmup": lambda: LR.LinearWarmup(LR.ExponentialDecay(0.4, 0.8), 3, 0.1, 0.4),
    "ExponentialDecay": lambda: LR.ExponentialDecay(0.4, 0.8),
    "MultiStepDecay": lambda: LR.MultiStepDecay(0.4, [2, 4], 0.5),
    "StepDecay": lambda: LR.StepDecay(0.4, 2, 0.5),
    "LambdaDecay": lambda: LR.LambdaDecay(0.4, lambda epoch: 1 / (1 + epoch)),
    "MultiplicativeDecay": lambda: LR.MultiplicativeDecay(0.4, lambda epoch: 0.9),
    "ReduceOnPlateau": lambda: LR.ReduceOnPlateau(0.4, patience=1, factor=0.5),
    "CosineAnnealingDecay": lambda: LR.CosineAnnealingDecay(0.4, 8, 0.05),
    "CosineAnnealingWarmRestarts": lambda: LR.CosineAnnealingWarmRestarts(0.4, 2, 2, 0.05),
    "OneCycleLR": lambda: LR.OneCycleLR(0.4, 10, 4.0, 0.05),
    "OneCycleLR, three phases": lambda: LR.OneCycleLR(
        0.4, 12, 4.0, 0.05, 0.4, anneal_strategy="linear", three_phase=True
    ),
    "CyclicLR": lambda: LR.CyclicLR(0.1, 0.4, 2, 3),
    "CyclicLR, exp_range": lambda: LR.CyclicLR(0.1, 0.4, 2, mode="exp_range", exp_gamma=0.9),
    "LinearLR": lambda: LR.LinearLR(0.4, 5, 0.5),
    "exponential_decay": lambda: LAYERS.exponential_decay(0.4, 2, 0.7, staircase=True),
    "natural_exp_decay": lambda: LAYERS.natural_exp_decay(0.4, 2, 0.3),
    "inverse_time_decay": lambda: LAYERS.inverse_time_decay(0.4, 2, 0.5),
    "polynomial_decay": lambda: LAYERS.polynomial_decay(0.4, 4, 0.05, 2.0, cycle=True),
    "piecewise_decay": lambda: LAYERS.piecewise_decay([2, 4], [0.4, 0.2, 0.1]),
    "noam_decay": lambda: LAYERS.noam_decay(64, 3, 2.0),
    "cosine_decay": lambda: LAYERS.cosine_decay(0.4, 2, 6),
    "linear_lr_warmup": lambda: LAYERS.linear_lr_warmup(LAYERS.exponential_decay(0.4, 2, 0.8), 3, 0.1, 0.4),
    "a number": lambda: 0.3,
}
DECAY = paddle.regularizer.L2Decay(0.1)
RULES = {
    "SGD": lambda rate: paddle.optimizer.SGD(rate, weight_decay=DECAY),
    "Momentum": lambda rate: paddle.optimizer.Momentum(rate, 0.8),
    "Momentum, Nesterov": lambda rate: paddle.optimizer.Momentum(rate, 0.8, use_nesterov=True),
    "Adagrad": lambda rate: paddle.optimizer.Adagrad(rate),
    "Adam": lambda rate: paddle.optimizer.Adam(rate),
    "AdamW": lambda rate: paddle.optimizer.AdamW(rate, weight_decay=0.2),
    "Adamax": lambda rate: paddle.optimizer.Adamax(rate, weight_decay=DECAY),
    "Adadelta": lambda rate: paddle.optimizer.Adadelta(rate, epsilon=1e-2),
    "Ftrl": lambda rate: paddle.optimizer.Ftrl(rate, l1=0.1),
    "RMSProp": lambda rate: paddle.optimizer.RMSProp(rate, 0.9, momentum=0.5, centered=True, epsilon=0.1),
}
MODES = ("async", "half_async", "sync", "geo")


class Servers:
    """The server of one program, in this process, and the trainer's client."""

    def __init__(self, training, scope, mode):
        tables = training.plan.tables()
        with socket.create_server(("127.0.0.1", 0)) as lease:
            end = f"127.0.0.1:{lease.getsockname()[1]}"
        self.server = _native.RpcServer(
            rank=0, servers=1, trainers=1, mode=mode, tables=tables, endpoint=end, epoch=0
        )
        self.client = _native.connect(
            [end], 0, 1, mode, tables, epoch=0, launcher="", exchange=[1, 1, 1, 0]
        )
        for name, table, width in training.dense_entries():
            self.client.set_dense(table, np.asarray(scope.native.value(name)))
        training.connect(self.client)


def train(schedule, rule, mode, on_servers):
    """[the rows, the dense parameter, one of another rate] after STEPS steps."""
    main, startup, scope = paddle.static.Program(), paddle.static.Program(), paddle.static.Scope()
    exe = paddle.static.Executor()
    with (
        paddle.utils.unique_name.guard(),
        paddle.static.scope_guard(scope),
        paddle.static.program_guard(main, startup),
    ):
        ids = paddle.static.data("ids", [None, 1], "int64")
        first = paddle.nn.initializer.Constant(1.0)
        attr = paddle.ParamAttr("rows", initializer=first, learning_rate=0.5)
        rows = paddle.static.nn.embedding(ids, [4, 2], is_sparse=on_servers, param_attr=attr)
        w = paddle.create_parameter([2], "float32", attr=paddle.ParamAttr("w", initializer=first))
        slow = paddle.ParamAttr("slow", initializer=first, learning_rate=0.25)
        loss = paddle.mean(paddle.square(rows * w + paddle.create_parameter([2], "float32", attr=slow)))
        rate = SCHEDULES[schedule]()
        if schedule == "NoamDecay":
            rate.step()  # its first rate is 0, which Ftrl refuses
        RULES[rule](rate).distribute(loss, startup, mode, on_servers)
        exe.run(startup)
        training = main.training
        servers = Servers(training, scope, mode) if on_servers else None
        for metric in METRICS[:STEPS]:
            # Each row in each step: on a server the others would not decay, nor count a step.
            exe.run(main, feed={"ids": np.array([[3], [1], [0], [2], [1]])})
            if isinstance(rate, LR.ReduceOnPlateau):
                rate.step(metric)
            elif isinstance(rate, LR.LRScheduler) and not rate.by_step:
                rate.step()
        if servers is None:
            return [np.asarray(scope.native.value(name)) for name in ("rows", "w", "slow")]
        training.leave_pass()
        training.pull_dense(scope.native)
        if mode == "geo":
            servers.client.barrier()
        table = next(entry.table for entry in training.plan.entries() if entry.table.sparse)
        found = [np.asarray(servers.client.pull_rows(table.id, [0, 1, 2, 3], 2))]
        found += [np.asarray(scope.native.value(name)) for name in ("w", "slow")]
        servers.client.goodbye()
        return found


def drawn(count, seed):
    """Pairs of a schedule and a rule: all, or `count` with each schedule and rule among them."""
    every = list(itertools.product(SCHEDULES, RULES))
    if count is None:
        return every
    chance = random.Random(seed)
    schedules, rules = list(SCHEDULES), list(RULES)
    chance.shuffle(schedules)
    chance.shuffle(rules)
    cells = [(each, rules[i % len(rules)]) for i, each in enumerate(schedules)]
    rest = [pair for pair in every if pair not in cells]
    return cells[:count] + chance.sample(rest, max(0, count - len(cells)))


def main(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--cells", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    paddle.enable_static()
    wrong, farthest, count = 0, 0.0, 0
    alone = {}
    for mode in options.mode or MODES:
        for schedule, rule in drawn(options.cells, options.seed):
            if (schedule, rule) not in alone:
                alone[schedule, rule] = train(schedule, rule, mode, False)
            got, expected = train(schedule, rule, mode, True), alone[schedule, rule]
            far = max(float(np.max(np.abs(g - e) / (1e-3 + np.abs(e)))) for g, e in zip(got, expected))
            count, farthest = count + 1, max(farthest, far)
            moved = min(float(np.max(np.abs(e - 1.0))) for e in expected)
            if not far < 5e-6 or not moved > 1e-4 or not math.isfinite(far):
                wrong += 1
                print(f"{mode}, {schedule}, {rule}: {far:.1e} off, moved by {moved:.1e}", flush=True)
    print(f"{count} cells, {wrong} wrong, the farthest {farthest:.1e} off")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

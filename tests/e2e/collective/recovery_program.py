"""A static program whose training survives what is done to it, for test_recovery.py: momentum and a rate that
falls, by Executor.run, or with PASSES by train_from_dataset.

environment: recovery_faults.py, and PASSES
"""

import os

import numpy

import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
from fleetrun.distributed import recoverable
from recovery_faults import BATCHES, EPOCHS, OUT, Faults

SIZE = 4  # of a batch

fleet.init(is_collective=True)
rank, ranks = fleet.worker_index(), fleet.worker_num()
faults = Faults(rank)
paddle.enable_static()
main, startup = paddle.static.default_main_program(), paddle.static.default_startup_program()
main.random_seed = startup.random_seed = 5
x = paddle.static.data("x", [None, 1])
y = paddle.static.data("y", [None, 1])
hidden = paddle.static.nn.fc(x, 16, activation="relu")
out = paddle.static.nn.fc(hidden, 1)
loss = paddle.mean(paddle.square(out - y))
evaluation = main.clone(for_test=True)
rate = paddle.optimizer.lr.StepDecay(0.05, step_size=3, gamma=0.9)
optimizer = fleet.distributed_optimizer(paddle.optimizer.Momentum(rate, momentum=0.9))
optimizer.minimize(loss)
exe = paddle.static.Executor()
exe.run(startup)
numpy.random.seed(100 + rank)
faults.come_late()
run = recoverable(main)


def batches():
    """Numbers of examples, and their noise, drawn when they are read."""
    for numbers in numpy.random.permutation(BATCHES * SIZE).reshape(BATCHES, SIZE):
        inputs = (numbers[:, None] * ranks + rank) / 50.0 + 0.01 * numpy.random.randn(SIZE, 1)
        yield inputs.astype("float32"), numbers * ranks + rank


def train(inputs):
    faults.take()
    faults.die_at("forward")
    (value,) = exe.run(main, feed={"x": inputs, "y": numpy.sin(inputs)}, fetch_list=[loss])
    rate.step()
    faults.die_at("applied")
    return float(value)


def evaluate():
    faults.take()
    error = numpy.array(exe.run(evaluation, feed={"x": points, "y": numpy.sin(points)}, fetch_list=[loss])[0])
    paddle.distributed.all_reduce(error)
    faults.die_at("evaluated")
    return float(error)


def train_pass(number):
    """An epoch in one step: the files of this rank, by threads of the engine."""
    path = f"{OUT}/examples.{rank}"
    with open(path, "w") as file:
        for inputs, _ in [next(batches()) for _ in range(BATCHES)]:
            file.writelines(f"1 {value:.6f} 1 {numpy.sin(value):.6f}\n" for value in inputs[:, 0])
    dataset = paddle.distributed.QueueDataset()
    dataset.init(use_var=[x, y], pipe_command="cat", batch_size=SIZE, thread_num=1)
    dataset.set_filelist([path])
    faults.die_at("forward")
    exe.train_from_dataset(main, dataset)
    faults.die_at("applied")
    return exe.last_pass.examples


points = numpy.linspace(0, 2, 5, dtype="float32")[:, None]
for epoch in run.epochs(EPOCHS):
    if os.environ.get("PASSES"):
        faults.begin_batch(epoch)
        faults.note(epoch=epoch, examples=run.step(train_pass, epoch))
        continue
    for inputs, numbers in run.batches(batches()):
        faults.begin_batch(epoch * BATCHES + run.place[3] - 1)
        value = run.step(train, inputs)
        faults.note(epoch=epoch, numbers=numbers.tolist(), loss=value)
        faults.die_at("between")
    faults.drawn = (epoch + 1) * BATCHES
    faults.note(epoch=epoch, evaluated=run.step(evaluate))
scope = paddle.static.global_scope()
faults.end(numpy.array(scope.find_var(each.name)) for each in main.all_parameters())

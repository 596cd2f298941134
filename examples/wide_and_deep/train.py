"""Trains wide & deep on the flights and prints its AUC on the months it has not seen.

    fleetrun --server_num=1 --trainer_num=2 train.py      on a parameter server
    python train.py                                       in one process, its tables in memory

prepare_data.py writes the data.
"""
import argparse
import time
from pathlib import Path

import numpy

import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
from fleetrun.incubate.distributed.fleet.parameter_server import distribute_transpiler as transpiler
from model import WideDeepModel

HERE = Path(__file__).resolve().parent


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, default=HERE / "data",
                        help="folder with train/ and test/ (data)")
    parser.add_argument("--mode", choices=("async", "sync", "half_async", "geo"), default="async",
                        help="how trainers and servers exchange gradients (async)")
    parser.add_argument("--sync", dest="mode", action="store_const", const="sync",
                        help="the same as --mode sync")
    parser.add_argument("--geo-steps", type=int, default=100, help="geo: batches between two exchanges (100)")
    parser.add_argument("--epochs", type=int, default=3, help="passes over the training set (3)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first values (1)")
    parser.add_argument("--batch-size", type=int, default=500,
                        help="examples in a batch of one trainer (500)")
    parser.add_argument("--threads", type=int, default=1, help="reader and trainer threads of a trainer (1)")
    parser.add_argument("--learning-rate", type=float, default=0.015, help="of Adagrad (0.015)")
    parser.add_argument("--print-period", type=int, default=100,
                        help="batches between two lines of loss (100)")
    parser.add_argument("--save", type=Path, help="folder to save the model to")
    return parser.parse_args()


def dataset(arguments, model, part):
    """This trainer's share of the files of data/`part`."""
    files = sorted(str(file) for file in (arguments.data / part).glob("part-*.txt"))
    if not files:
        raise SystemExit(f"train.py: error: no part-*.txt in {arguments.data / part}\n"
                         "  hint: python prepare_data.py writes them")
    data = paddle.distributed.QueueDataset()
    data.init(use_var=model.inputs, pipe_command="python reader.py", batch_size=arguments.batch_size,
              thread_num=arguments.threads)
    data.set_filelist(fleet.util.get_file_shard(files))
    return data


class Auc:
    """The area under the curve over what all trainers have predicted since reset().

    The auc operator of the program counts predictions, late flights and others apart, in 4096 steps of the
    probability; the counts of all trainers are added up,
    and the area under their curve is exact up to those steps.
    """

    def __init__(self, model):
        self._names = [state.name for state in model.auc_state[-2:]]

    def _tensors(self):
        return [paddle.static.global_scope().find_var(name).get_tensor() for name in self._names]

    def reset(self):
        for tensor in self._tensors():
            tensor.set(numpy.zeros_like(numpy.array(tensor)), paddle.CPUPlace())

    def value(self):
        """(AUC, examples)"""
        late, other = (fleet.util.all_reduce(numpy.array(tensor).ravel().astype("float64"))
                       for tensor in self._tensors())
        hits, alarms = numpy.cumsum(late[::-1]), numpy.cumsum(other[::-1])
        area = numpy.trapezoid(hits, alarms) if hasattr(numpy, "trapezoid") else numpy.trapz(hits, alarms)
        return area / (hits[-1] * alarms[-1]), int(hits[-1] + alarms[-1])


def train(arguments, model, test_program):
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    first = fleet.is_first_worker()
    auc = Auc(model)
    for epoch in range(1, arguments.epochs + 1):
        auc.reset()
        started = time.monotonic()
        exe.train_from_dataset(paddle.static.default_main_program(), dataset(arguments, model, "train"),
                               paddle.static.global_scope(), debug=False, fetch_list=[model.loss, model.auc],
                               fetch_info=["loss", "auc"],
                               print_period=arguments.print_period if first else 0)
        area, examples = auc.value()
        seconds = time.monotonic() - started
        if first:
            print(
                f"epoch {epoch} of {arguments.epochs}: {examples} examples, "
                  f"{examples / seconds:.0f} examples/s, loss {exe.last_pass.fetch_means[0]:.4f}, "
                  f"AUC {area:.4f}", flush=True)
    # Every trainer has pushed its last gradient before the first one predicts.
    fleet.barrier_worker()
    auc.reset()
    exe.infer_from_dataset(test_program, dataset(arguments, model, "test"), paddle.static.global_scope())
    area, examples = auc.value()
    if first:
        print(f"test AUC: {area:.4f} on {examples} flights that were not trained on", flush=True)
        if arguments.save:
            fleet.save_persistables(exe, str(arguments.save))
    fleet.stop_worker()


def strategy_of(arguments):
    """What the mode is called in Paddle: half-asynchronous training has only its older name."""
    if arguments.mode == "half_async":
        return transpiler.DistributedStrategyFactory.create_half_async_strategy()
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = arguments.mode != "sync"
    if arguments.mode == "geo":
        strategy.a_sync_configs = {"k_steps": arguments.geo_steps}
    return strategy


def main():
    arguments = parse()
    paddle.enable_static()
    paddle.seed(arguments.seed)
    fleet.init(is_collective=False)

    model = WideDeepModel()
    model.net(is_train=True)
    test_program = paddle.static.default_main_program().clone(for_test=True)
    optimizer = paddle.optimizer.Adagrad(learning_rate=arguments.learning_rate,
                                         initial_accumulator_value=1e-4)
    optimizer = fleet.distributed_optimizer(optimizer, strategy_of(arguments))
    optimizer.minimize(model.loss)

    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
    else:
        train(arguments, model, test_program)


if __name__ == "__main__":
    main()

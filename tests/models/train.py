#!/usr/bin/env python3
"""Trains models of models.py on the files of movielens.py and prints their AUC on the test.

    python train.py --data DIR all --seeds 1 2 3 4 5       the table of tests/bench/RESULTS.md;
                                                           DIR gets the files when it has none
    python train.py --data DIR deepfm --validate --curve   how the epochs below were chosen;
                                                           DIR is another one

A row has the median over the seeds (smallest and largest), and by how much it is above the largest of the
logistic regression of the same features and label; the script ends with 1 when that is less than the seeds
differ. The data goes through an InMemoryDataset, each epoch in another order.
"""
import argparse
import statistics
from pathlib import Path

import fleetrun as paddle
import models
import movielens
import numpy
from inputs import Inputs

# Epochs, learning rate and decay: the best on the fifth of the ratings before the test.
SETTINGS = {"lr": (10, 0.01, 3e-5), "fm": (9, 0.001, 0.0), "dnn": (5, 0.001, 0.0),
            "wide_and_deep": (8, 0.001, 0.0),
            "deepfm": (8, 0.001, 0.0), "dcn": (6, 0.001, 0.0), "xdeepfm": (6, 0.001, 0.0),
            "din": (3, 0.001, 0.0),
            "dssm": (4, 0.001, 0.0), "esmm": (3, 0.001, 0.0), "mmoe": (8, 0.001, 0.0)}


def dataset(inputs, folder, part, batch_size, seed):
    """The files of one part in memory; `seed` decides the orders that they are shuffled into."""
    data = paddle.distributed.InMemoryDataset()
    data.init(use_var=inputs.slots, pipe_command="cat", batch_size=batch_size, thread_num=1,
              shuffle_seed=seed)
    data.set_filelist(sorted(map(str, (folder / part).glob("part-*.txt"))))
    data.load_into_memory()
    return data


class Auc:
    """The area under the curve of a prediction over everything since reset(),
    from the counters of the auc operator."""

    def __init__(self, prediction, label):
        both = paddle.concat([1.0 - prediction, prediction], axis=1)
        *_, states = paddle.static.auc(input=both, label=label)
        self._names = [state.name for state in states[-2:]]

    def _tensors(self, scope):
        return [scope.find_var(name).get_tensor() for name in self._names]

    def reset(self, scope):
        """Forgets what was seen."""
        for tensor in self._tensors(scope):
            tensor.set(numpy.zeros_like(numpy.array(tensor)), paddle.CPUPlace())

    def value(self, scope):
        """The area."""
        yes, no = (numpy.cumsum(numpy.array(tensor).ravel()[::-1].astype("float64"))
                   for tensor in self._tensors(scope))
        before = [numpy.concatenate([[0.0], counts]) for counts in (yes, no)]
        area = ((before[0][1:] + before[0][:-1]) / 2 * numpy.diff(before[1])).sum()
        return area / (yes[-1] * no[-1])


def run(name, folder, seed, arguments):
    """{label: AUC on the test after each epoch} of one model from one seed."""
    epochs, rate, decay = SETTINGS[name.split("_of_")[0]]
    epochs, rate = arguments.epochs or epochs, arguments.learning_rate or rate
    main, startup, scope = paddle.static.Program(), paddle.static.Program(), paddle.static.Scope()
    main.random_seed = startup.random_seed = seed
    with paddle.utils.unique_name.guard(), paddle.static.program_guard(
            main, startup), paddle.static.scope_guard(scope):
        inputs = Inputs(int((folder / "ids.txt").read_text()))
        loss, predictions = models.BY_NAME[name](inputs)
        curves = {label: Auc(prediction, inputs.labels[label]) for label, prediction in predictions.items()}
        test_program = main.clone(for_test=True)
        paddle.optimizer.Adam(learning_rate=rate, lazy_mode=True,
                              weight_decay=paddle.regularizer.L2Decay(decay)).minimize(loss)
        executor = paddle.static.Executor(paddle.CPUPlace())
        executor.run(startup)
        train = dataset(inputs, folder, "train", arguments.batch_size, seed)
        test = dataset(inputs, folder, "test", arguments.batch_size, seed)
        found = {label: [] for label in curves}
        for _ in range(epochs):
            train.local_shuffle()
            executor.train_from_dataset(main, train)
            for curve in curves.values():
                curve.reset(scope)
            executor.infer_from_dataset(test_program, test)
            for label, curve in curves.items():
                found[label].append(curve.value(scope))
    return found


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("models", nargs="+", choices=["all", *models.BY_NAME], metavar="MODEL",
                        help=f"all, or any of {', '.join(models.BY_NAME)}")
    parser.add_argument("--data", type=Path, required=True,
                        help="folder of the files; made when it is not there")
    parser.add_argument("--made-up", action="store_true",
                        help="make them from a formula instead of MovieLens-100k")
    parser.add_argument("--validate", action="store_true",
                        help="make them without the test, the fifth before it instead")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1],
                        help="seeds of the first values and of the order (1)")
    parser.add_argument("--epochs", type=int, help="passes over the training set (each model's own)")
    parser.add_argument("--batch-size", type=int, default=256, help="examples in a batch (256)")
    parser.add_argument("--learning-rate", type=float, help="of Adam (each model's own)")
    parser.add_argument("--curve", action="store_true", help="print the AUC after each epoch, too")
    return parser.parse_args()


def main():
    arguments = parse()
    paddle.enable_static()
    if not (arguments.data / "ids.txt").exists():
        tables = movielens.made_up() if arguments.made_up else movielens.download(arguments.data)
        movielens.write(tables, arguments.data, arguments.validate)
    baselines, near = {}, []
    print("| model | label | test AUC | above logistic regression |\n|---|---|---|---|", flush=True)
    for name in models.BY_NAME if "all" in arguments.models else arguments.models:
        runs = [run(name, arguments.data, seed, arguments) for seed in arguments.seeds]
        for label in runs[0]:
            last = [found[label][-1] for found in runs]
            margin = f"{statistics.median(last) - baselines[label]:+.4f}" if label in baselines else "–"
            if name.startswith("lr_of_"):
                baselines[label] = max(last)
            elif label in baselines and statistics.median(last) - baselines[label] <= max(last) - min(last):
                near.append(f"{name} {label}")
            area = f"{statistics.median(last):.4f} ({min(last):.4f} to {max(last):.4f})"
            print(f"| {name} | {label} | {area} | {margin} |", flush=True)
            for found in runs if arguments.curve else []:
                print("  " + " ".join(f"{value:.4f}" for value in found[label]), flush=True)
    if near:
        raise SystemExit("train.py: not above logistic regression by more than the seeds differ: "
                         f"{', '.join(near)}")


if __name__ == "__main__":
    main()

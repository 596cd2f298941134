"""Trains a small deep model on Criteo's click log and prints its AUC.

    fleetrun --server_num=1 --trainer_num=2 train.py      on a parameter server
    python train.py                                       in one process, its tables in memory

make_data.py writes data of the same shape, for who does not have the log. The raw text becomes slots inside
the dataset, by criteo.json, or by reader.py as the pipe command, which prints the bytes of `fleetrun data
read --schema=criteo.json`. Other forms of the log need other settings, no other program.
"""
import argparse
import math
import time
from pathlib import Path

import numpy

import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

HERE = Path(__file__).resolve().parent
DENSE, WORDS = 13, 26
READERS = {
    ("log", "native"): {"schema": HERE / "criteo.json"},
    ("log", "python"): {"pipe_command": ["python", HERE / "reader.py"]},
    # Commas, and a first line of names.
    ("csv", "native"): {"schema": HERE / "criteo_csv.json"},
    ("csv", "python"): {"pipe_command": ["python", HERE / "reader.py", ","]},
    # `click:0 dense_feature:0.05 … 1:737395 … 26:306163`, as PaddleRec has it:
    # 13 numbers and 26 ids are there already.
    ("slots", "native"): {"pipe_command": """sed 's/[a-z0-9_]*://g' | awk '{
        label = $1; $1 = "13"; for (i = 15; i <= 40; i++) $i = "1 " $i; print $0, "1", label}'"""},
}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("files", nargs="*", help="raw text (data/part-*.txt)")
    parser.add_argument("--format", choices=("log", "csv", "slots"), default="log", help="the text's (log)")
    parser.add_argument("--reader", choices=("native", "python"), default="native",
                        help="what makes slots of it (native)")
    parser.add_argument("--epochs", type=int, default=2, help="passes over the files (2)")
    parser.add_argument("--batch-size", type=int, default=100,
                        help="examples in a batch of one trainer (100)")
    parser.add_argument("--learning-rate", type=float, default=0.05, help="of Adagrad (0.05)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first values (1)")
    return parser.parse_args()


class Model:
    """Rows of 8 numbers for each word, two layers over them and the counts.

    Shape: counts[batch, 13] float32; C1..C26[batch, 1] int64; label[batch, 1] int64, 1 for a click.
    """

    def __init__(self, width=8, hidden=(64, 32)):
        counts = paddle.static.data(name="counts", shape=[None, DENSE], dtype="float32")
        words = [paddle.static.data(name=f"C{i}", shape=[None, 1], dtype="int64")
                 for i in range(1, WORDS + 1)]
        label = paddle.static.data(name="label", shape=[None, 1], dtype="int64")
        self.inputs = [counts, *words, label]
        start = paddle.nn.initializer.Normal(mean=0.0, std=0.01)
        rows = [paddle.reshape(paddle.static.nn.sparse_embedding(
            input=word, size=[1 << 32, width], param_attr=paddle.ParamAttr(name="rows", initializer=start)),
            [-1, width])
            for word in words]
        layer, size = paddle.concat([*rows, counts], axis=1), width * WORDS + DENSE
        for next_size in hidden:
            spread = paddle.nn.initializer.Normal(mean=0.0, std=1.0 / math.sqrt(size))
            linear = paddle.nn.Linear(size, next_size, weight_attr=paddle.ParamAttr(initializer=spread))
            layer, size = paddle.nn.functional.relu(linear(layer)), next_size
        prediction = paddle.nn.functional.sigmoid(paddle.nn.Linear(size, 1)(layer))
        both = paddle.concat([1.0 - prediction, prediction], axis=1)
        self.auc, _, self.auc_state = paddle.static.auc(input=both, label=label)
        self.loss = paddle.mean(paddle.nn.functional.log_loss(prediction, paddle.cast(label, "float32")))


def dataset(arguments, model):
    """This trainer's share of the files."""
    files = sorted(arguments.files or map(str, (HERE / "data").glob("part-*.txt")))
    mine = fleet.util.get_file_shard(files)
    if not mine:
        raise SystemExit(
            f"train.py: error: {len(files)} files are too few for {fleet.worker_num()} trainers\n"
                         "  hint: python make_data.py writes four, `split -n l/4 FILE` makes four of one")
    data = paddle.distributed.QueueDataset()
    data.init(use_var=model.inputs, batch_size=arguments.batch_size, thread_num=1,
              **READERS[arguments.format, arguments.reader])
    data.set_filelist(mine)
    return data


class Auc:
    """The area under the curve over what all trainers have predicted since reset(),
    from the auc operator's counts."""

    def __init__(self, model):
        scope = paddle.static.global_scope()
        self._counts = [scope.find_var(state.name).get_tensor() for state in model.auc_state[-2:]]

    def reset(self):
        for counts in self._counts:
            counts.set(numpy.zeros_like(numpy.array(counts)), paddle.CPUPlace())

    def value(self):
        """(AUC, examples)"""
        clicks, others = (fleet.util.all_reduce(numpy.array(counts).ravel().astype("float64"))
                          for counts in self._counts)
        hits, alarms = numpy.cumsum(clicks[::-1]), numpy.cumsum(others[::-1])
        area = ((alarms[1:] - alarms[:-1]) * (hits[1:] + hits[:-1]) / 2).sum() + alarms[0] * hits[0] / 2
        return area / (hits[-1] * alarms[-1]), int(hits[-1] + alarms[-1])


def train(arguments, model):
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    auc = Auc(model)
    for epoch in range(1, arguments.epochs + 1):
        auc.reset()
        started = time.monotonic()
        exe.train_from_dataset(paddle.static.default_main_program(), dataset(arguments, model),
                               fetch_list=[model.loss],
                               fetch_info=["loss"], print_period=0)
        area, examples = auc.value()
        if fleet.is_first_worker():
            print(f"epoch {epoch} of {arguments.epochs}: {examples} examples, "
                  f"{examples / (time.monotonic() - started):.0f} examples/s, loss "
                  f"{exe.last_pass.fetch_means[0]:.4f}, AUC {area:.4f}", flush=True)
    fleet.stop_worker()


def main():
    arguments = parse()
    paddle.enable_static()
    paddle.seed(arguments.seed)
    fleet.init(is_collective=False)
    model = Model()
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    optimizer = paddle.optimizer.Adagrad(learning_rate=arguments.learning_rate,
                                         initial_accumulator_value=1e-4)
    fleet.distributed_optimizer(optimizer, strategy).minimize(model.loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
    else:
        train(arguments, model)


if __name__ == "__main__":
    main()

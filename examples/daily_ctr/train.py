"""A click model that learns from every day's clicks, and goes on from the day before:

    python make_data.py
    fleetrun --server_num=1 --trainer_num=2 train.py 1         # makes model/1
    fleetrun --server_num=1 --trainer_num=2 train.py 2         # goes on from model/1, makes model/2
    fleetrun predict model/2/serve data/3/part-0 \\
        --slots=show:int64[1],click:int64[1],user:int64,item:int64,seen:int64

A day's clicks are first predicted by yesterday's model and then learned. Rows count shows and clicks, fade
from day to day, and go when little of both is left.
"""
import argparse
import glob
import os

import fleetrun as paddle
import fleetrun.distributed.fleet as fleet


class Model:
    """A user, an item and items seen before, their rows in tables that count shows and clicks."""

    def __init__(self):
        self.show = paddle.static.data("show", [None, 1], "int64")
        self.click = paddle.static.data("click", [None, 1], "int64")
        self.ids = [paddle.static.data(name, [None, 1], "int64", lod_level=1)
                    for name in ("user", "item", "seen")]
        self.inputs = [self.show, self.click, *self.ids]
        entry = paddle.distributed.ShowClickEntry("show", "click")
        pooled = []
        for ids, table in zip(self.ids, ("users", "items", "items")):
            rows = paddle.static.nn.sparse_embedding(ids, [1000, 8], entry=entry,
                                                     param_attr=paddle.ParamAttr(name=table))
            pooled.append(paddle.static.nn.sequence_pool(rows, "average"))
        hidden = paddle.nn.functional.relu(paddle.nn.Linear(24, 32)(paddle.concat(pooled, axis=1)))
        self.predict = paddle.nn.functional.sigmoid(paddle.nn.Linear(32, 1)(hidden))
        label = paddle.cast(self.click, "float32")
        self.loss = paddle.mean(paddle.nn.functional.log_loss(self.predict, label))
        # Of this trainer's examples; the counters of all trainers are added up by fleet.metrics.auc.
        _, _, counters = paddle.static.auc(paddle.concat([1 - self.predict, self.predict], axis=1),
                                           self.click)
        self.counters = counters[2:]


def clicks_of(day, model):
    """This trainer's examples of a day, in memory."""
    dataset = paddle.distributed.InMemoryDataset()
    dataset.init(use_var=model.inputs, batch_size=64, thread_num=1, pipe_command="cat")
    dataset.set_filelist(fleet.util.get_file_shard(sorted(glob.glob(f"data/{day}/part-*"))))
    dataset.load_into_memory()
    return dataset


def train(day, model, test_program):
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    clicks = clicks_of(day, model)

    exe.infer_from_dataset(test_program, clicks)
    before = fleet.metrics.auc(*model.counters)
    clicks.global_shuffle(fleet)
    exe.train_from_dataset(paddle.static.default_main_program(), clicks, fetch_list=[model.loss],
                           fetch_info=["loss"],
                           print_period=20)
    examples = clicks.get_memory_data_size(fleet)
    clicks.release_memory()
    fleet.util.print_on_rank(f"day {day}: {examples} examples, AUC before they were learned {before:.4f}", 0)

    # Every trainer has pushed its last gradient. Each is asked to save; the first one does.
    fleet.barrier_worker()
    if fleet.is_first_worker():
        gone = fleet.shrink()
        fleet.save_persistables(exe, f"model/{day}/all", mode=3)  # ends the day: rows age
        feeds = [ids.name for ids in model.ids]
        fleet.save_inference_model(exe, f"model/{day}/serve", feeds, [model.predict])
        print(f"day {day}: {gone} rows went", flush=True)
    fleet.stop_worker()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("day", type=int)
    day = parser.parse_args().day
    if not glob.glob(f"data/{day}/part-*"):
        raise SystemExit(f"train.py: error: no part-* in data/{day}\n  hint: python make_data.py writes them")
    paddle.enable_static()
    paddle.seed(1)
    fleet.init()
    model = Model()
    test_program = paddle.static.default_main_program().clone(for_test=True)
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    # From day to day a third of an item's shows and clicks is kept;
    # its row goes when they are worth less than 2 clicks.
    ctr = "table_parameters.items.accessor.ctr_accessor_param."
    strategy.sparse_table_configs = {"items": {ctr + "show_click_decay_rate": 0.33,
                                               ctr + "delete_threshold": 2.0}}
    fleet.distributed_optimizer(paddle.optimizer.Adam(0.01), strategy).minimize(model.loss)
    if fleet.is_server():
        yesterday = f"model/{day - 1}/all"
        fleet.init_server(yesterday if os.path.isdir(yesterday) else None)
        fleet.run_server()
    else:
        train(day, model, test_program)


if __name__ == "__main__":
    main()

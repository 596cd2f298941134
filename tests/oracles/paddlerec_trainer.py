#!/usr/bin/env python3
"""Runs PaddleRec's static_ps_trainer.py, also for models that were written for its trainer of one process.

usage: paddlerec_trainer.py TOOLS queue|feed ARGUMENT…    (the folder tools; its trainer's arguments)

The trainer saves model.inference_target_var, which many models do not have: they then save the first thing
that they fetch. With `feed` the batches come from the model's own DataLoader, as in the trainer of one
process, at most 8 of them, and a model whose create_optimizer() leaves the strategy out trains with it.
"""
import importlib
import itertools
import os
import sys

BATCHES = 8


def with_target(model):
    """The model, with something to save."""
    net = model.net

    def build(*inputs, **options):
        fetched = net(*inputs, **options)
        if not hasattr(model, "inference_target_var"):
            model.inference_target_var = next(iter(fetched.values()))
        return fetched

    model.net = build
    return model


def with_strategy(model):
    """The model, whose optimizers train on servers even when it does not ask for that."""
    import paddle
    from paddle.distributed import fleet

    create, base = model.create_optimizer, paddle.optimizer.Optimizer
    minimize = base.minimize

    def with_fleet(rule, *arguments, **options):
        base.minimize = minimize
        return fleet.distributed_optimizer(rule, model.strategy).minimize(*arguments, **options)

    def create_optimizer(strategy=None):
        model.strategy, base.minimize = strategy, with_fleet
        create(None)

    model.create_optimizer = create_optimizer
    return model


def feeding(trainer):
    """The trainer's Main, which reads through the model's DataLoader."""
    import paddle
    from utils.utils_single import create_data_loader

    class Feeding(trainer.Main):
        def init_reader(self):
            self.reader, self.example_nums, self.count_method = None, 0, "example"

        def dataset_train_loop(self, epoch):
            loader = create_data_loader(self.config, paddle.set_device("cpu"))
            names = [feed.name for feed in self.input_data]
            for number, batch in enumerate(itertools.islice(loader(), BATCHES), start=1):
                values = self.exe.run(paddle.static.default_main_program(), feed=dict(zip(names, batch)),
                                      fetch_list=list(self.metrics.values()))
                said = [f"Epoch {epoch} Var {name}[1]:{value}" for name, value in zip(self.metrics, values)]
                print(f"batch: [{number}], {', '.join(said)}", flush=True)

    return Feeding


def main(tools, source):
    sys.argv[:3] = [os.path.join(os.path.abspath(tools), "static_ps_trainer.py")]
    sys.path[0] = os.path.abspath(tools)
    trainer = importlib.import_module("static_ps_trainer")
    trainer.paddle.enable_static()
    trainer.config = config = trainer.parse_args()
    os.environ["CPU_NUM"] = str(config.get("runner.thread_num"))
    made, feeds = trainer.get_model, source == "feed"
    ready = with_strategy if feeds else (lambda model: model)
    trainer.get_model = lambda config: ready(with_target(made(config)))
    (feeding(trainer) if feeds else trainer.Main)(config).run()


if __name__ == "__main__":
    main(*sys.argv[1:3])

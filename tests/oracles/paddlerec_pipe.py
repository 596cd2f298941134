#!/usr/bin/env python3
"""A pipe_command for any model of PaddleRec: its own RecDataset reads the file, and MultiSlot text comes out.

usage: paddlerec_pipe.py LIMIT CONFIG.yaml UTILS < FILE    (PaddleRec's trainer adds the last two)

Whole batches are written, until there are LIMIT examples: a cell of the table takes seconds.
"""
import importlib
import itertools
import os
import sys
import tempfile

import numpy
import yaml


def flat(settings, path=()):
    """{"runner.epochs": 1, …} of nested settings."""
    found = {}
    for key, value in settings.items():
        below = isinstance(value, dict)
        found.update(flat(value, (*path, key)) if below else {".".join((*path, key)): value})
    return found


def examples_of(reader, file, config):
    dataset = importlib.import_module(reader).RecDataset([file], config=config)
    if hasattr(type(dataset), "__iter__"):
        return iter(dataset)
    return (dataset[i] for i in range(len(dataset)))


def slot(values):
    values = numpy.asarray(values).reshape(-1)
    spelled = "%d" if values.dtype.kind in "iub" else "%r"
    return " ".join([str(len(values)), *(spelled % value for value in values.tolist())])


def main(limit, config, utils):
    try:
        import paddle  # noqa: F401
    except ImportError:  # outside of a job that runs with --compat=paddle
        import fleetrun

        sys.modules["paddle"], sys.modules["paddle.io"] = fleetrun, importlib.import_module("fleetrun.io")
    folder = os.path.dirname(os.path.abspath(config))
    sys.path[:0] = [folder, os.path.dirname(utils.rstrip("/")), utils]
    with open(config, encoding="utf-8") as stream:
        settings = flat(yaml.safe_load(stream))
    settings.update(config_abs_dir=folder, yaml_path=config)
    out, sys.stdout = sys.stdout, sys.stderr  # readers print
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(sys.stdin.read())
        file.flush()
        found = examples_of(settings["runner.train_reader_path"], file.name, settings)
        written = 0
        batch = settings["runner.train_batch_size"]
        while written < int(limit):
            lines = [" ".join(map(slot, example)) for example in itertools.islice(found, batch)]
            if len(lines) < batch:
                return
            print(*lines, sep="\n", file=out)
            written += batch


if __name__ == "__main__":
    main(*sys.argv[1:])

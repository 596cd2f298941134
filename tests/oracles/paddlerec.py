#!/usr/bin/env python3
"""Runs PaddleRec's static models, unmodified, with fleetrun and with real Paddle, and writes a table of it.

usage: tests/oracles/paddlerec.py CHECKOUT WORK [--paddle PYTHON] [--only MODEL,…] [--cells CELL,…]
                                                  [--limit 240] [--seed 1] [--missing]

CHECKOUT is a checkout of PaddlePaddle/PaddleRec, WORK a folder for a copy of it, the logs and cells.json,
from which the table is written: tests/oracles/paddlerec_cells.md. A run with --only or --cells replaces those
cells and keeps the others; with --missing it keeps those that are there, too: the same command goes on where
it was stopped. --seed is that of Python's hashes, of random and of numpy, in every process. fleetrun is
$FLEETRUN_BIN or the one in PATH; PYTHON (2.6.2) trains on from what fleetrun saved. Both need what
PaddleRec's readers import: yaml, six, pandas, sklearn, tqdm, and an xxhash below 4, that takes text
($PYTHONPATH is passed on).

Cells: train (one epoch), infer, resume (from what train saved), paddle (real Paddle resumes from the same
files: how far its loss is from ours in the first batch, and at most in all, both through
paddlerec_in_turn.py; then, with the script as it is, how far Paddle's loss is at most from ours, and from
that of Paddle's second run), paddle-train, paddle-infer and paddle-resume (real Paddle alone: what works
there is asked for here); async, sync, geo, with -1x1
(server, trainer) and -2x2 after it: 48 examples on parameter servers; documented: the configurations that
PaddleRec has for them, 1 server, 2 trainers. A cell has the first and the last loss that was printed.
"""
import argparse
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import paddlerec_configurations as configurations

HERE = Path(__file__).resolve().parent
MODES = [f"{mode}-{count}" for mode in ("async", "sync", "geo") for count in ("1x1", "2x2")]
OURS = ["train", "infer", "resume"]
CELLS = [*OURS, "paddle", *(f"paddle-{cell}" for cell in OURS), *MODES]
NUMBER = r"(-?\d[-+\d.e]*|nan|-?inf)"
# A batch of PaddleRec's trainer of one process, and of train_from_dataset.
BATCH = re.compile(r"batch_id: \d+, (.*?)avg_reader_cost|batch: \[\d+\], (.*)")
VALUE = re.compile(rf"(?:Epoch \d+ Var )?([A-Za-z_]\w*)(?:\[\d+\]:\[*|: \[*)\s*{NUMBER}")
ERROR = re.compile(r"^[ |]*[\w.]*(?:Error|Exception|NotFound|Unimplemented)\w*:.*", re.MULTILINE)


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--paddle", help="an interpreter with paddlepaddle==2.6.2")
    parser.add_argument("--only", default="")
    parser.add_argument("--cells", default="")
    parser.add_argument("--limit", type=int, default=240, help="seconds that one run may take")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--missing", action="store_true", help="run only cells that are not there yet")
    return parser.parse_args(words)


class Runs:
    """Runs of one copy of PaddleRec, their cells, and where both are kept."""

    def __init__(self, options):
        self.options = options
        self.root = options.work.resolve() / "PaddleRec"
        self.logs = options.work.resolve() / "logs"
        self.fleetrun = os.environ.get("FLEETRUN_BIN") or shutil.which("fleetrun")
        if not self.root.exists():
            shutil.copytree(options.checkout, self.root, ignore=shutil.ignore_patterns(".git"))
        self.logs.mkdir(exist_ok=True)
        seeds = options.work.resolve() / "seeds"
        seeds.mkdir(exist_ok=True)
        (seeds / "sitecustomize.py").write_text(
            "import random\n\nimport numpy\n\n"
            f"random.seed({options.seed})\nnumpy.random.seed({options.seed})\n")
        self.paths = os.pathsep.join([str(seeds), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.kept = options.work / "cells.json"
        self.cells = self.read()

    def read(self):
        return json.loads(self.kept.read_text()) if self.kept.exists() else {}

    def run(self, name, command, folder):
        """(exit status, output with that of trainer 0, seconds)."""
        log, begin = self.logs / name.replace("/", "_"), time.monotonic()
        fixed = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "PYTHONPATH": self.paths,
                 "PYTHONHASHSEED": str(self.options.seed)}
        shutil.rmtree(folder / "log", ignore_errors=True)
        with log.open("w") as stream:
            child = subprocess.Popen(command, cwd=folder, env={**os.environ, **fixed}, stdout=stream,
                                     stderr=subprocess.STDOUT)
            try:
                status = child.wait(self.options.limit)
            except subprocess.TimeoutExpired:
                child.terminate()
                child.wait()
                status = 124
            finally:
                child.kill()  # where this script is ended
        return status, log.read_text(errors="replace"), time.monotonic() - begin

    def wants(self, model, cell):
        """Whether a cell is to be run: with --missing only one that is not there."""
        return not (self.options.missing and self.cells.get(model, {}).get(cell))

    def cell(self, model, cell, command, folder):
        """Runs and keeps a cell; its text begins with `ok` when the run ended well. Returns its losses."""
        status, text, seconds = self.run(f"{model}.{cell}", command, folder)
        rows = losses(text)
        said = f"ok {rows[0]:.6g} → {rows[-1]:.6g}" if rows else "ok"
        if status != 0:
            errors = ERROR.findall(text)
            said = f"{status}: {errors[-1].strip(' |')[:160] if errors else 'ended without an error'}"
        self.keep(model, cell, said)
        print(f"{model:40} {cell:12} {seconds:5.0f} s  {len(rows):4} batches  {said}", flush=True)
        return rows

    def keep(self, model, cell, said):
        self.cells = self.read()  # another run may have written others
        self.cells.setdefault(model, {})[cell] = said
        written = self.kept.with_suffix(f".{os.getpid()}")
        written.write_text(json.dumps(self.cells, indent=1, ensure_ascii=False))
        written.replace(self.kept)


def losses(text):
    """What each batch printed as its loss: the value that is called so, or the first one."""
    found = []
    for first, second in BATCH.findall(text):
        values = dict(VALUE.findall(first or second))
        names = [name for name in values if re.search("loss|cost", name, re.IGNORECASE)] or list(values)
        if names:
            found.append(float(values[names[0]]))
    return found


def without_counters(saved, to):
    """What was saved without the AUC's counters, whose shape Paddle changes and then refuses, in its own
    files, too; the trainer sets them to 0 anyway."""
    to.mkdir(parents=True, exist_ok=True)
    for file in saved.glob("rec_static.pd[po]*"):
        if file.suffix in (".pdparams", ".pdopt"):
            values = pickle.loads(file.read_bytes())
            kept = {name: value for name, value in values.items() if "_generated_var" not in name}
            (to / file.name).write_bytes(pickle.dumps(kept, protocol=4))


def apart(losses, others):
    """How far losses are from each other at most, and in how many batches."""
    if len(losses) != len(others) or not losses:
        return f"{len(losses)} batches for {len(others)}"
    return f"{max(abs(one - other) for one, other in zip(losses, others)):.0e} of {len(losses)}"


def options(*more):
    return ["-o", "runner.use_gpu=0", "runner.epochs=1", "runner.print_interval=1", *more]


def one_process(runs, model, cells):
    """The cells of a model that need one process: ours, those of real Paddle, and Paddle with our files."""
    folder = runs.root / "models" / model
    tools = os.path.relpath(runs.root / "tools", folder)
    config, more = configurations.of(folder)
    ours = [runs.fleetrun, "--compat=paddle", "--nproc_per_node=1"]

    def run(cell, program, script, *settings):
        given = ["-m", config, *options(*settings, *more)]
        return runs.cell(model, cell, [*program, f"{tools}/{script}", *given], folder)

    def resume(cell, program, source):
        return run(cell, program, "static_trainer.py", f"runner.model_init_path={source}/0",
                   "runner.model_save_path=resumed")

    def beside_paddle():
        without_counters(folder / "saved/0", folder / "plain/0")
        paddle, turns = [runs.options.paddle], str(HERE / "paddlerec_in_turn.py")
        one, other = (resume(f"{name}-in-turn", [*program, turns], "plain")
                      for name, program in (("resume", ours), ("paddle", paddle)))
        first, second = (resume(name, paddle, "plain") for name in ("paddle-first", "paddle-second"))
        as_it_is = runs.cells[model].get("losses", [])
        if one and other:
            runs.keep(model, "paddle", f"ok, apart {abs(one[0] - other[0]):.0e}, then {apart(one, other)}; "
                      f"as it is {apart(as_it_is, first)}, Paddle from itself {apart(second, first)}")

    for program, prefix, saved in ((ours, "", "saved"), ([runs.options.paddle], "paddle-", "saved_paddle")):
        wanted = {cell for cell in OURS if prefix + cell in cells and runs.wants(model, prefix + cell)}
        if not program[0]:
            continue
        if "train" in wanted:
            shutil.rmtree(folder / saved, ignore_errors=True)
            run(f"{prefix}train", program, "static_trainer.py", f"runner.model_save_path={saved}")
        if "infer" in wanted:
            run(f"{prefix}infer", program, "static_infer.py", f"runner.infer_load_path={saved}",
                "runner.infer_start_epoch=0", "runner.infer_end_epoch=1")
        if "resume" in wanted:
            if prefix:
                without_counters(folder / saved / "0", folder / f"{saved}_plain/0")
            rows = resume(f"{prefix}resume", program, saved + ("_plain" if prefix else ""))
            runs.keep(model, f"{prefix}losses", rows)
    if "paddle" in cells and runs.options.paddle and runs.wants(model, "paddle"):
        beside_paddle()
    for copy in ("resumed", "plain", "saved_paddle_plain"):
        shutil.rmtree(folder / copy, ignore_errors=True)


def on_servers(runs, name, model, config, more, servers, trainers, cell, source="queue"):
    """A run of PaddleRec's trainer for parameter servers."""
    folder = runs.root / "models" / model
    if re.search(r"pipe_command:.*models/", (folder / config).read_text()):
        config, folder = f"models/{model}/{config}", runs.root  # its pipe command is written for the checkout
    tools = os.path.relpath(runs.root / "tools", folder)
    command = [runs.fleetrun, "--compat=paddle", f"--server_num={servers}", f"--trainer_num={trainers}",
               str(HERE / "paddlerec_trainer.py"), tools, source, "-m", config]
    saved = ["runner.use_auc=False", "runner.thread_num=1", "runner.model_save_path=saved_ps"]
    (folder / "saved_ps").mkdir(exist_ok=True)  # its trainers race to make it
    runs.cell(name, cell, [*command, *options(*saved, *more)], folder)


def generic(runs, model, cells):
    folder = runs.root / "models" / model
    config, more = configurations.of(folder)
    source = "feed" if model in configurations.FED else "queue"
    pipe = f"runner.pipe_command={sys.executable} {HERE / 'paddlerec_pipe.py'} 48"
    for cell in MODES:
        if cell in cells and runs.wants(model, cell):
            mode, servers, trainers = re.fullmatch(r"(\w+)-(\d)x(\d)", cell).groups()
            given = [f"runner.sync_mode={mode}", "runner.reader_type=QueueDataset", pipe,
                     "runner.example_count_method=example", *more]
            on_servers(runs, model, model, config, given, servers, trainers, cell, source)


def main(words):
    options = parse(words)
    options.work.mkdir(parents=True, exist_ok=True)
    runs = Runs(options)
    only = options.only.split(",")
    cells = [cell for cell in options.cells.split(",") if cell] or [*CELLS, "documented"]
    os.nice(10)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for model in configurations.models(runs.root):
        if any(part in model for part in only):
            one_process(runs, model, cells)
            generic(runs, model, cells)
    for number, (model, config, more) in enumerate(configurations.DOCUMENTED, start=1):
        wanted = any(part in f"{model}/{config}" for part in only)
        if wanted and "documented" in cells and runs.wants(f"{number} {model}/{config}", "documented"):
            configurations.write_data(runs.root / "models" / model)
            on_servers(runs, f"{number} {model}/{config}", model, config, more, 1, 2, "documented")
    configurations.write_table(runs.cells, CELLS, HERE / "paddlerec_cells.md")


if __name__ == "__main__":
    main(sys.argv[1:])

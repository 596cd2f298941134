"""Which models and configurations of PaddleRec paddlerec.py runs, the data that they want, and the table."""
import random
import re
import sys

# Where a configuration does not run as it is, in any Paddle: its reader writes 300 of the 408 slots.
_SLOTS = ["hyper_parameters.slot_num=300"]
_DATA = ["runner.train_data_dir=criteo", "runner.train_batch_size=16", "runner.reader_type=QueueDataset"]
# The configurations for servers of its documents. Raw Criteo files are a download: write_data() makes some.
DOCUMENTED = [
    ("rank/dnn", "config_cpups.yaml", ["runner.sync_mode=async"]),
    ("rank/dnn", "config_cpups.yaml", ["runner.sync_mode=geo"]),
    ("rank/dnn", "config_cpups.yaml", ["runner.sync_mode=sync"]),
    ("rank/dnn", "config_queuedataset.yaml", ["runner.sync_mode=async"]),
    ("rank/dnn", "benchmark.yaml", _DATA),
    ("rank/wide_deep", "config_cpups.yaml", []),
    ("rank/wide_deep", "benchmark.yaml", _DATA),
    ("rank/wide_deep", "benchmark_dump.yaml", ["runner.train_data_dir=criteo_lineid"]),
    ("rank/deepfm", "benchmark.yaml", [*_DATA, "runner.sync_mode=async"]),
    ("rank/slot_dnn", "config_queuedataset.yaml", _SLOTS),
    ("rank/slot_dnn", "config_queuedataset_for_concat.yaml", ["runner.sync_mode=async", *_SLOTS]),
    ("recall/word2vec/benchmark", "benchmark.yaml",
     ["runner.train_data_dir=../data/train", "runner.reader_type=QueueDataset"]),
]
# Models whose batches MultiSlot text cannot say (as wide as the longest history, pickles, two files at
# a time), and those that leave out the strategy: the trainers feed what their DataLoader gives.
FED = {"multitask/dselect_k", "rank/bst", "rank/dien", "rank/din", "rank/dsin", "rank/naml", "recall/mind",
       "recall/tisas", "recall/word2vec"}
# How far apart the losses of a first batch may be.
APART = 1e-5
# What the cells do not say by themselves. Float64: Paddle 2.6.2 with float64 for float32, the
# same first values and batches.
NOTES = """
Real Paddle ends with an error, too: deepwalk (needs pgl), tdm (files of its tree builder), fastformer
(gives parameters variables for values), word2vec/benchmark (names of Paddle 2.0's beta: paddle.initializer,
paddle.sum(dim=…)), word2vec's infer, and slot_dnn in one process. A cell that is empty was not run; 124 is
a run that took too long: real Paddle wants more than 16 GB for deepfefm. ffm saves 4.2 GB (a third of it
parameters, the rest Adam's moments), here as in Paddle; that takes longer than its epoch.

tisas feeds [1, 50] to a variable that it declares [-1, 50, 50] when it infers; that is taken as it comes, as
in Paddle, and predictions from the same parameters agree within 1.3e-7. It trains with dropout, whose numbers
are others in Paddle. The readers of dien and tagspace draw from Python's and numpy's global generators, and
the trainer begins its loader twice: two threads draw then, so that neither Paddle's second run nor one of
fleetrun's need have the same batches.

From first values, difm and dlrm leave Paddle's losses after a batch or nine. They normalize batches of 4 and
of 2: in each of seven layers rounding grows by up to 1 / sqrt(epsilon) = 316, and Adam's first step makes a
whole step out of gradients that are 0 but for rounding. Neither side is wrong. Gradients of the first batch
are apart from float64 by at most 3e-5 of the greatest (difm) and 2e-3 (dlrm) here, 4e-5 and 2e-3 in Paddle;
the loss of difm's second batch, for five first values, by 7e-5, 8e-5, 5e-6, 8e-6, 3e-4 here, and 6e-6, 8e-6,
7e-5, 1e-2, 4e-5 in Paddle. Trained on from the same moments, difm's 20 batches agree within 4e-6 in one run,
3e-4 in another.
"""


def models(root):
    """The folders below models/ that have a static model; the demo's are those of other folders."""
    found = [file.parent.relative_to(root / "models") for file in (root / "models").rglob("static_model.py")]
    return sorted(str(model) for model in found if "demo" not in model.parts)


def of(folder):
    """(configuration, options) with which the trainers run the model of a folder."""
    for config in ("config.yaml", "config_queuedataset.yaml", "benchmark.yaml", "config_bigdata.yaml"):
        if (folder / config).exists():
            pipe = f"runner.pipe_command={sys.executable} queuedataset_reader.py"
            return config, [*_SLOTS, pipe] if config == "config_queuedataset.yaml" else []
    raise SystemExit(f"paddlerec: error: {folder} has no configuration that this knows")


def write_data(folder):
    """Criteo's raw lines: a label, 13 whole numbers, 26 words; and the same with a line's name."""
    chance = random.Random(3)

    def line():
        numbers = [str(chance.randrange(60)) if chance.random() > 0.2 else "" for _ in range(13)]
        words = [f"{chance.randrange(1000):08x}" for _ in range(26)]
        return "\t".join([str(chance.randrange(2)), *numbers, *words])

    for name, first in (("criteo", False), ("criteo_lineid", True)):
        (folder / name).mkdir(exist_ok=True)
        lines = [f"line{i}\t{line()}\n" if first else line() + "\n" for i in range(160)]
        (folder / name / "part-0").write_text("".join(lines), encoding="utf-8")


def resumes(row):
    """Whether a model trains on from its files as real Paddle does from the same: what runs to its end may
    have loaded nothing, so the losses of the first batch are compared."""
    apart = re.match(r"ok, apart (\S+),", row.get("paddle", ""))
    return row.get("resume", "").startswith("ok") and apart is not None and float(apart[1]) <= APART


def verdict(cells):
    """A line for train, infer and resume: how many models real Paddle does it with, with how many of them
    fleetrun does, and what the others end with."""
    text = ""
    for cell in ("train", "infer", "resume"):
        # What can be trained from files can be trained on.
        theirs = {"train": "paddle-train", "infer": "paddle-infer", "resume": "paddle-train"}[cell]
        asked = [row for row in sorted(cells) if cells[row].get(theirs, "").startswith("ok")]
        is_done = resumes if cell == "resume" else lambda row, cell=cell: row.get(cell, "").startswith("ok")
        every = [row for row in cells if is_done(cells[row])]
        here = [row for row in asked if row in every]
        text += f"\n- {cell}: {len(here)} of the {len(asked)} models that real Paddle was seen to {cell}"
        text += f", the first loss within {APART} of Paddle's from the same files" if cell == "resume" else ""
        text += f"; {len(every)} models in all.\n"
        for row in asked:
            if row not in here:
                names = [cell, "paddle"] if cell == "resume" else [cell]
                said = [cells[row].get(name, "not run") for name in names]
                text += f"  Not {row}: {' '.join('; Paddle from these files: '.join(said).split())}\n"
    return text


def write_table(cells, names, file):
    """The Markdown table of all cells."""
    text = "# PaddleRec with fleetrun\n\nWritten by tests/oracles/paddlerec.py, which says what a cell is.\n"
    rows = [model for model in sorted(cells) if not model[0].isdigit()]
    documented = sorted((row for row in cells if row[0].isdigit()), key=lambda row: int(row.split()[0]))
    text += verdict(cells)
    parts = (names[:4], names[4:7], names[7:], ["documented"])
    for columns, rows in zip(parts, (rows, rows, rows, documented)):
        text += f"\n| model | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}\n"
        for row in rows:
            said = [" ".join(cells[row].get(column, "").split()).replace("|", "/") for column in columns]
            text += f"| {row} | {' | '.join(said)} |\n"
    file.write_text(text + NOTES, encoding="utf-8")

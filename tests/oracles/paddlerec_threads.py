#!/usr/bin/env python3
"""How far the losses of PaddleRec's models are from real Paddle's, and Paddle's from its own.

usage: tests/oracles/paddlerec_threads.py CHECKOUT WORK --paddle PYTHON [--only MODEL,…] [--limit 240]

The arguments are those of paddlerec.py, and WORK may be the same. Real Paddle trains a model for an epoch and
saves it. From these files five runs go on over the same batches: fleetrun, and Paddle with 1, 2 and 4 threads
for an operator, and with other instructions of the processor (MKL_CBWR=COMPATIBLE), as on another machine. A
line for each model says how far from Paddle with 1 thread the loss of the first batch is, and at most that of
the first 50: of fleetrun, of Paddle with 2 and 4 threads (the farther), of Paddle with other instructions.
Ends with 1 where fleetrun's first loss is more than 1e-5 away.
"""
import os
import sys

import paddlerec
import paddlerec_configurations as configurations

# Models of different operators, whose examples are many batches.
MODELS = ["contentunderstanding/textcnn", "multitask/mmoe", "rank/deepfm", "rank/dnn", "rank/fm",
          "rank/gatenet", "rank/logistic_regression", "recall/ncf", "recall/word2vec"]
BATCHES, FIRST = 50, 1e-5
# How Paddle runs: the first is what the others are compared with.
PADDLES = {
    "1": {"OMP_NUM_THREADS": "1"},
    "2": {"OMP_NUM_THREADS": "2", "FLAGS_paddle_num_threads": "2"},
    "4": {"OMP_NUM_THREADS": "4", "FLAGS_paddle_num_threads": "4"},
    "other": {"OMP_NUM_THREADS": "1", "MKL_CBWR": "COMPATIBLE"},
}


def curves(runs, model):
    """{name: losses} of fleetrun and of Paddle with each number of threads, from what Paddle saved."""
    folder = runs.root / "models" / model
    config, more = configurations.of(folder)
    trainer = os.path.join(os.path.relpath(runs.root / "tools", folder), "static_trainer.py")

    def run(name, program, *settings):
        given = [trainer, "-m", config, *paddlerec.options(*more, *settings)]
        status, text, _ = runs.run(f"{model}.threads-{name}", [*program, *given], folder)
        if status:
            raise SystemExit(f"paddlerec_threads: error: {model}: {name} ended with {status}: "
                             f"{runs.logs / (model.replace('/', '_') + '.threads-' + name)}")
        return paddlerec.losses(text)[:BATCHES]

    paddle, saved = [runs.options.paddle], "saved_by_paddle"
    each = len(run("saves", paddle, f"runner.model_save_path={saved}"))
    paddlerec.without_counters(folder / saved / "0", folder / saved / "plain")
    settings = [f"runner.model_init_path={saved}/plain", "runner.model_save_path=resumed",
                f"runner.epochs={-(-BATCHES // each)}"]
    found = {"fleetrun": run("fleetrun", [runs.fleetrun, "--compat=paddle", "--nproc_per_node=1"], *settings)}
    for name, environment in PADDLES.items():
        words = ["env", *(f"{key}={value}" for key, value in environment.items())]
        found[name] = run(f"paddle-{name}", [*words, *paddle], *settings)
    return found


def apart(one, other):
    """(how far the first losses are from each other, and at most all)."""
    distances = [abs(left - right) for left, right in zip(one, other, strict=True)]
    return distances[0], max(distances)


def main(words):
    options = paddlerec.parse(words)
    if not options.paddle:
        raise SystemExit("paddlerec_threads: error: --paddle is missing, an interpreter with Paddle 2.6.2")
    options.work.mkdir(parents=True, exist_ok=True)
    runs, only, far = paddlerec.Runs(options), options.only.split(","), 0
    os.nice(10)
    print(f"{'model':30} {'fleetrun':>16} {'threads':>16} {'instructions':>16}")
    for model in MODELS:
        if any(part in model for part in only):
            found = curves(runs, model)
            pairs = {name: apart(rows, found["1"]) for name, rows in found.items()}
            threads = max(pairs["2"], pairs["4"], key=lambda pair: pair[1])
            said = [f"{first:.0e} {most:.1e}" for first, most in (pairs["fleetrun"], threads, pairs["other"])]
            print(f"{model:30} {said[0]:>16} {said[1]:>16} {said[2]:>16}", flush=True)
            far += pairs["fleetrun"][0] > FIRST
    return int(far > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""usage: tests/campaigns/ps_jobs.py [--count N] [--seed N] [--only N] [--fleetrun PATH]

Each run is a small job of parameter servers as users of Paddle write them (ps_jobs_train.py, by
`fleetrun --compat=paddle`), with random choices: one to three servers and trainers, threads, files with any
number of examples or none, mode, optimizer, rates, clipping, decay, lookups of any kind, a QueueDataset or an
InMemoryDataset, evaluation and saves meanwhile, a second job that goes on from a save on another number of
servers, predictions without servers, and servers that are killed and started again.

What it learns has to be what numpy makes of the same examples in float64 (ps_jobs_judge.py): the loss of each
batch, all parameters after passes and at the end, what was saved, and what is predicted.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import campaign
import numpy as np
from ps_jobs_judge import Judge

LIMIT = 100
SCRIPT = pathlib.Path(__file__).with_name("ps_jobs_train.py")
PREDICT = """
import json
import numpy as np
import paddle
import paddle.fluid as fluid
paddle.enable_static()
exe = paddle.static.Executor(paddle.CPUPlace())
program, names, targets = paddle.static.load_inference_model("served/model", exe)
with open("asked.json") as file:
    asked = json.load(file)
feed = {}
for name, (kind, value, lengths) in asked.items():
    value = np.array(value, kind)
    feed[name] = fluid.create_lod_tensor(value, [lengths], fluid.CPUPlace()) if lengths else value
got, = exe.run(program, feed={name: feed[name] for name in names}, fetch_list=targets)
print("predicted", json.dumps(np.array(got).ravel().tolist()))
"""
state = {"jobs": 0, "batches": 0, "values": 0, "killed": 0, "predictions": 0}


def optimizer_of(random):
    """(class and options, a rate at which it is stable)"""
    return random.choice(
        [
            (["SGD", {}], 0.2),
            (["SGD", {}], 0.2),
            (["Momentum", {"momentum": 0.8}], 0.05),
            (["Momentum", {"momentum": 0.8, "use_nesterov": True}], 0.05),
            (["Adagrad", {"initial_accumulator_value": random.choice([0.0, 0.1]), "epsilon": 1e-3}], 0.05),
            (["Adam", {"lazy_mode": True, "epsilon": 1e-4}], 0.01),
            (["Adam", {"lazy_mode": True, "beta1": 0.8, "beta2": 0.99, "epsilon": 1e-4}], 0.01),
            (["Adamax", {}], 0.01),
            (["RMSProp", {"rho": 0.9, "epsilon": 1e-4}], 0.01),
            (["RMSProp", {"rho": 0.9, "epsilon": 1e-4, "momentum": 0.5}], 0.01),
            (["Adadelta", {"epsilon": 1e-4}], 1.0),
        ]
    )


def make_job(random):
    mode = random.choice(["sync", "sync", "sync", "half_async", "geo"])
    trainers = random.choice([1, 2, 2, 3]) if mode == "sync" else 1
    slots, tables = random.randint(1, 3), random.randint(1, 2)
    width, hidden, dense, keys = random.randint(1, 4), random.randint(1, 4), random.choice([0, 1, 3]), 40
    dataset = random.choice(["QueueDataset", "InMemoryDataset"])
    optimizer, rate = optimizer_of(random)
    # A sign that rounding turns round: with others a whole step may come of it.
    jumps = "L1Decay" if optimizer[0] in ("SGD", "Momentum") else "L2Decay"
    schedule = random.choice(
        [
            None,
            None,
            ["ExponentialDecay", {"gamma": 0.7}],
            ["NaturalExpDecay", {"gamma": 0.3}],
            ["InverseTimeDecay", {"gamma": 0.5}],
            ["StepDecay", {"step_size": 2, "gamma": 0.5}],
            ["PolynomialDecay", {"decay_steps": 2, "end_lr": 0.001}],
        ]
    )
    names = [f"table{i}" for i in range(tables)]
    number = 0
    files = []
    for _ in range(trainers):
        count = random.choice([0, 1, 2, 3, 4]) if trainers > 1 else random.randint(1, 4)
        files.append([f"part-{number + i}" for i in range(count)])
        number += count
    if not any(files):
        files[0] = ["part-0"]
    draw = lambda rows, columns: [
        [round(random.uniform(-0.6, 0.6), 3) for _ in range(columns)] for _ in range(rows)
    ]
    epochs = random.randint(1, 3)
    own = {}
    for name in [*names, "w1", "w2"]:
        if random.random() < 0.2:
            own[name] = {"rate": random.choice([0.5, 2.0]), "clip": random.random() < 0.6}
            if random.random() < 0.5:
                own[name]["decay"] = [random.choice(["L2Decay", jumps]), 0.01]
    clip = random.choice(
        [
            None,
            None,
            None,
            ["ClipGradByGlobalNorm", 0.3],
            ["ClipGradByNorm", 0.2],
            ["ClipGradByValue", 0.05],
        ]
    )
    job = {
        "mode": mode,
        "trainers": trainers,
        "servers": random.randint(1, 3),
        "factory": mode == "half_async" or random.random() < 0.4,
        "block": random.choice([1, 4, 8192]),
        "k_steps": random.choice([1, 3, 100]),
        "many": random.random() < 0.6,
        "pool": random.choice(["sum", "average", "sqrt"]),
        "lookup": random.choice(["sparse_embedding", "fluid", "sparse", "dense"]),
        "slots": [random.randrange(tables) for _ in range(slots)],
        "keys": keys,
        "width": width,
        "dense": dense,
        "hidden": hidden,
        "tables": [{"name": name, "begin": random.choice([0.0, 0.1, -0.25])} for name in names],
        "weights": {
            "w1": draw(slots * width + dense, hidden),
            "b1": draw(1, hidden)[0],
            "w2": draw(hidden, 1),
        },
        "own": own,
        "clip": clip,
        "decay": random.choice([None, None, ["L2Decay", 0.02], [jumps, 0.003]]),
        "optimizer": optimizer,
        "rate": rate,
        "schedule": schedule,
        "dataset": dataset,
        "batch": random.choice([1, 3, 7, 16, 64]),
        "threads": random.choice([1, 1, 2, 3]) if dataset == "QueueDataset" and mode == "sync" else 1,
        "pipe": random.choice(["cat", "cat", "sed -e '/^#/d'", "awk '{print}'"]),
        "preload": random.random() < 0.5,
        "once": random.random() < 0.5,
        "release": random.random() < 0.5,
        "files": files,
        "test_files": ["test-0", "test-1"],
        "test_batch": random.choice([4, 11]),
        "epochs": epochs,
        "look_after": [epoch for epoch in range(epochs) if random.random() < 0.4],
        "save_after": [epoch for epoch in range(epochs) if random.random() < 0.4],
        "all_save": random.random() < 0.3,
        "load": None,
        "init_model": None,
        "served": random.random() < 0.4,
        "kill": [],
        "flags": [],
    }
    if random.random() < 0.25:
        killed = [random.randrange(job["servers"]) for _ in range(2)]
        job["kill"] = [("PSERVER", rank, random.uniform(0.3, 0.9)) for rank in killed]
        job["flags"] = ["--ps_checkpoint=kept", "--max_restart=20", "--restart_backoff=0"]
        job["flags"] += ["--ps_replicas=1"] if job["servers"] > 1 and random.random() < 0.5 else []
    return job


def make_examples(random, job):
    """{file: examples}, written as MultiSlot text too."""
    out = {}
    for name in [*(name for files in job["files"] for name in files), *job["test_files"]]:
        count = random.choice([0, 1, 5, 12, 23, 40]) if name.startswith("part") else random.randint(1, 15)
        out[name] = []
        for _ in range(count):
            keys = [
                [random.randrange(job["keys"]) for _ in range(random.randint(1, 4) if job["many"] else 1)]
                for _ in job["slots"]
            ]
            dense = [round(random.uniform(-1, 1), 3) for _ in range(job["dense"])]
            label = (
                sum(key % 5 for each in keys for key in each) / 10 + sum(dense) + random.uniform(-0.1, 0.1)
            )
            out[name].append((keys, dense, round(label, 3)))
    if not any(out[name] for files in job["files"] for name in files):
        return make_examples(random, job)
    return out


def write_examples(directory, job, examples):
    for name, lines in examples.items():
        text = ["# a comment\n"] if job["pipe"].startswith("sed") else []
        for keys, dense, label in lines:
            words = [" ".join(map(str, [len(each), *each])) for each in keys]
            words += [" ".join(map(str, [len(dense), *dense]))] if dense else []
            text.append(" ".join([*words, f"1 {label}"]) + "\n")
        (directory / name).write_text("".join(text))


def compare(what, got, wanted, tolerance=2e-4):
    """What differs, or None."""
    got, wanted = np.array(got, "float64"), np.array(wanted, "float64")
    if got.shape != wanted.shape:
        return f"{what}: {got.shape} instead of {wanted.shape}"
    state["values"] += got.size
    if got.size and not np.allclose(got, wanted, rtol=tolerance, atol=tolerance):
        worst = np.unravel_index(np.nanargmax(np.abs(got - wanted)), got.shape)
        return f"{what}: at {tuple(map(int, worst))} {got[worst]:.7g} instead of {wanted[worst]:.7g}"
    return None


def compare_all(what, got, wanted):
    if set(got) != set(wanted):
        return f"{what}: {sorted(got)} instead of {sorted(wanted)}"
    return next(filter(None, (compare(f"{what}, {name}", got[name], wanted[name]) for name in wanted)), None)


LINE = re.compile(r"batch: \[(\d+)\], loss\[1\]:\[([^\]]*)\]")


def printed(text):
    """[the losses that a pass has printed]"""
    passes = []
    for line in text.splitlines():
        if line.startswith("pass begins"):
            passes.append([])
        elif found := LINE.search(line):
            passes[-1].append(float(found[2]))
    return passes


def kill_some(turn, job, process):
    """Kills processes of the job at its events; how many."""
    killed = 0
    for role, rank, delay in job["kill"]:
        time.sleep(delay)
        for pid, line in turn.living().items():
            if process.poll() is not None or "train.py" not in line:
                continue
            with contextlib.suppress(OSError):
                words = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                if f"TRAINING_ROLE={role}".encode() in words and f"FLEETRUN_RANK={rank}".encode() in words:
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
                    break
    return killed


def start(turn, job, name, script=SCRIPT):
    """Runs a job to its end: (what went wrong or None, what each trainer said, their logs)"""
    directory = turn.directory
    (directory / "job.json").write_text(json.dumps(job))
    shutil.copy(script, directory / "train.py")
    shutil.copy(script.with_name("ps_training.py"), directory)
    for path in directory.glob("said-*"):
        path.unlink()
    flags = [f"--server_num={job['servers']}", f"--trainer_num={job['trainers']}", f"--log_dir={name}"]
    flags += job["flags"]
    process = turn.start("--compat=paddle", *flags, "train.py")
    state["jobs"] += 1
    state["killed"] += kill_some(turn, job, process)
    if wrong := turn.wait_for_end(process, LIMIT, 1800):
        return f"{name}: {wrong}", None, None
    said = [json.loads((directory / f"said-{rank}").read_text()) for rank in range(job["trainers"])]
    logs = [
        "".join(path.read_text() for path in sorted((directory / name).glob(f"workerlog.{rank}*")))
        for rank in range(job["trainers"])
    ]
    return None, said, logs


def job_from_save(turn, job, name, mode, **more):
    """A job that goes on from a save of `job`, and is left alone: it loads it, looks at the tables, and may
    train a day."""
    return {
        **job,
        "servers": turn.random.randint(1, 3),
        "days": turn.random.randint(0, 1),
        "load_mode": mode,
        turn.random.choice(["load", "init_model"] if mode != 1 else ["load"]): name,
        "kill": [],
        "flags": [],
        "slow": 0.0,
        "ends_of_days": [["look"]],
        **more,
    }


def judge(job, judge_now, said, logs, saved):
    """What the job said wrongly; `saved` gets the judge of each save."""
    passes = [printed(log) for log in logs]
    values, at = [], 0
    for epoch in range(job["epochs"]):
        wanted = judge_now.train(epoch)
        for rank in range(job["trainers"]):
            state["batches"] += len(wanted[rank])
            if wrong := compare(f"losses of pass {epoch}, trainer {rank}", passes[rank][at], wanted[rank]):
                return wrong
        at += 1
        if epoch in job["look_after"]:
            values.append({name: value.copy() for name, value in judge_now.values.items()})
            for rank in range(job["trainers"]):
                if wrong := compare(
                    f"evaluation after pass {epoch}, trainer {rank}", passes[rank][at], judge_now.evaluate()
                ):
                    return wrong
            at += 1
        if epoch in job["save_after"]:
            saved[epoch] = judge_now.begin_again(job)
    values.append(judge_now.values)
    for rank, one in enumerate(said):
        for number, wanted in enumerate(values):
            if wrong := compare_all(f"values {number}, trainer {rank}", one["values"][number], wanted):
                return wrong
        total = job["trainers"] * (job["trainers"] + 1) / 2
        sums = [[total, epoch * job["trainers"]] for epoch in job["look_after"]]
        if wrong := compare("sums", one["sums"], sums):
            return wrong
    return None


def ask(turn, asked):
    """(what went wrong or None, predictions without servers, from what save_inference_model wrote)"""
    (turn.directory / "asked.json").write_text(json.dumps(asked))
    (turn.directory / "predict.py").write_text(PREDICT)
    done = subprocess.run(
        [
            turn.options.fleetrun,
            "--compat=paddle",
            "--nproc_per_node=1",
            "--log_dir=predicted",
            "predict.py",
        ],
        cwd=turn.directory,
        env=turn.environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        stdin=subprocess.DEVNULL,
    )
    log = (turn.directory / "predicted" / "workerlog.0").read_text()
    if done.returncode != 0:
        return f"predict: status {done.returncode}: {done.stderr[-900:]} {log[-900:]}", None
    return None, json.loads(re.search("predicted (.*)", log)[1])


def predict(turn, job, judge_now, examples):
    lines = [line for name in job["test_files"] for line in examples[name]]
    asked = {}
    for slot in range(len(job["slots"])):
        keys = [keys[slot] for keys, _, _ in lines]
        asked[f"C{slot}"] = (
            "int64",
            [[key] for each in keys for key in each],
            [len(each) for each in keys] if job["many"] else None,
        )
    if job["dense"]:
        asked["dense"] = ("float32", [dense for _, dense, _ in lines], None)
    wrong, got = ask(turn, asked)
    if wrong:
        return wrong
    state["predictions"] += len(lines)
    return compare("predictions", got, judge_now.forward(lines)[2].ravel())


def run(turn):
    job = make_job(turn.random)
    examples = make_examples(turn.random, job)
    write_examples(turn.directory, job, examples)
    judge_now, saved = Judge(job, examples), {}
    wrong, said, logs = start(turn, job, "first")
    wrong = wrong or judge(job, judge_now, said, logs, saved)
    if not wrong and job["served"]:
        wrong = predict(turn, job, judge_now, examples)
    if not wrong and saved and job["mode"] != "geo":
        epoch = turn.random.choice(list(saved))
        how = turn.random.choice(["load", "init_model"])
        second = {
            **job,
            "kill": [],
            "flags": [],
            "servers": turn.random.randint(1, 3),
            how: f"saved-{epoch}",
            "epochs": turn.random.randint(0, 2),
            "save_after": [],
            "served": False,
        }
        second["look_after"] = [each for each in job["look_after"] if each < second["epochs"]]
        judge_now = saved[epoch].begin_again(second)
        wrong, said, logs = start(turn, second, "second")
        wrong = wrong or judge(second, judge_now, said, logs, {})
    if wrong and turn.wait_until_gone(10) is None:
        wrong += "; something is left"
    if wrong and os.environ.get("KEEP"):
        shutil.copytree(
            turn.directory, pathlib.Path(os.environ["KEEP"]) / str(turn.number), dirs_exist_ok=True
        )
    return wrong


def summary():
    return (
        f"{state['jobs']} jobs, {state['batches']} batches, {state['values']} values compared, "
        f"{state['predictions']} predictions, {state['killed']} processes killed"
    )


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, run, count=100, summary=summary))

#!/usr/bin/env python3
"""usage: tests/campaigns/ps_counts.py [--count N] [--seed N] [--only N] [--fleetrun PATH]

Each run is a job of parameter servers as users of Paddle write them (ps_counts_train.py, by
`fleetrun --compat=paddle`), with random choices: any mode, one to three servers and trainers, threads, files
with any number of examples or none, a QueueDataset or an InMemoryDataset that is shuffled, entry thresholds,
shows and clicks, days that end with a shrink and saves of all modes, a second job that goes on from a save on
another number of servers, and processes that are killed and started again.

Its tables count: each key of each example has the gradient 1, and shows and clicks of its own. In the end
every row has to be what the files say, and what Paddle's formulas make of days and saves.
"""

import os
import pathlib
import shutil
import sys

import campaign
import numpy as np
import ps_jobs
from ps_jobs import compare, state

KEYS = 60
SCRIPT = pathlib.Path(__file__).parent / "ps_counts_train.py"


def make_job(random):
    mode = random.choice(["sync", "async", "half_async", "geo"])
    tables = {
        "sync": ["ctr"],
        "half_async": ["plain"],
        "geo": ["plain"],
        "async": ["plain", "ctr", "filter"],
    }
    trainers = random.randint(1, 3)
    number, files = 0, []
    for _ in range(trainers):
        count = random.choice([0, 1, 2, 3, 5]) if trainers > 1 else random.randint(1, 4)
        files.append([f"part-{number + i}" for i in range(count)])
        number += count
    if not number:
        files[0] = ["part-0"]
    days = random.randint(1, 3)
    servers = random.randint(1, 3)
    configs = {
        "async": random.choice(
            [{}, {"max_merge_var_num": 4}, {"independent_recv_thread": True}, {"send_queue_size": 2}]
        ),
        "geo": {"k_steps": random.choice([1, 3, 100])},
    }
    job = {
        "mode": mode,
        "table": random.choice(tables[mode]),
        "trainers": trainers,
        "servers": servers,
        "threads": random.randint(1, 3),
        "files": files,
        "days": days,
        "keys": KEYS,
        "entry": random.randint(1, 4),
        "a_sync_configs": configs.get(mode, {}),
        "batch": random.choice([1, 2, 5, 16, 100]),
        "dataset": random.choice(["QueueDataset", "InMemoryDataset"]),
        "pipe": random.choice(["cat", "awk '{print}'"]),
        "preload": random.random() < 0.5,
        "load_once": random.random() < 0.5,
        "shuffle": random.choice(["no", "local", "global"]),
        "evaluates": random.random() < 0.3,
        "test_files": ["test-0"],
        "init_model": None,
        "load": None,
        "load_mode": 0,
        "slow": 0.0,
        "kill": [],
        "flags": [],
        "accessor": {
            "accessor.accessor_class": "CtrCommonAccessor",
            "accessor.fea_dim": 3,
            "accessor.embedx_dim": 0,
            "accessor.embedx_threshold": 0,
            "accessor.ctr_accessor_param.nonclk_coeff": 0.25,
            "accessor.ctr_accessor_param.click_coeff": 1.0,
            "accessor.ctr_accessor_param.base_threshold": random.choice([0.0, 1.0, 2.5]),
            "accessor.ctr_accessor_param.delta_threshold": random.choice([0.0, 0.6, 1.5]),
            "accessor.ctr_accessor_param.delta_keep_days": random.choice([1, 16]),
            "accessor.ctr_accessor_param.show_click_decay_rate": random.choice([1.0, 0.5]),
            "accessor.ctr_accessor_param.delete_threshold": random.choice([0.0, 0.4, 1.0]),
            "accessor.ctr_accessor_param.delete_after_unseen_days": random.choice([1, 30]),
            "accessor.embed_sgd_param.name": "SparseNaiveSGDRule",
            "accessor.embed_sgd_param.naive.learning_rate": 1.0,
            "accessor.embed_sgd_param.naive.weight_bounds": [-1000000.0, 1000000.0],
            "accessor.embed_sgd_param.naive.initial_range": 0.0,
        },
    }
    ends = ["look", "shrink", 0, 1, 2, 3] if job["table"] == "ctr" else ["look", 0]
    job["ends_of_days"] = [random.sample(ends, random.randint(0, min(3, len(ends)))) for _ in range(days)]
    if random.random() < 0.4 and job["table"] != "filter":
        job["slow"] = 0.004
        job["flags"] = [
            "--max_restart=20",
            "--restart_backoff=0",
            "--restart=trainer=process",
            f"--ps_checkpoint_interval={random.choice([1, 60])}",
            "--ps_checkpoint=kept",
        ]
        if servers > 1 and random.random() < 0.5:
            job["flags"].append("--ps_replicas=1")
        who = [("PSERVER", rank) for rank in range(servers)]
        if job["shuffle"] != "global" or job["dataset"] == "QueueDataset":
            who += [("TRAINER", rank) for rank in range(trainers)] * 2
        job["kill"] = [[*random.choice(who), random.uniform(0.2, 1.2)] for _ in range(random.randint(1, 3))]
        if mode == "geo":
            job["days"], job["ends_of_days"] = 1, job["ends_of_days"][:1]
        if any(role == "TRAINER" for role, *_ in job["kill"]):
            job["ends_of_days"] = [[] for _ in job["ends_of_days"]]
    return job


def make_examples(random, job):
    out = {}
    for name in [*(name for files in job["files"] for name in files), *job["test_files"]]:
        out[name] = [
            (
                [
                    random.randrange(KEYS if random.random() < 0.3 else 12)
                    for _ in range(random.randint(1, 5))
                ],
                *random.choice([(1, 0), (1, 1), (2, 1)]),
            )
            for _ in range(random.choice([0, 1, 7, 25, 60]))
        ]
    if not any(out[name] for files in job["files"] for name in files) or not out["test-0"]:
        return make_examples(random, job)
    return out


class Judge:
    """The rows as they have to be: shows and clicks, days unseen, and what grew since a save."""

    def __init__(self, job, examples):
        self.job = job
        self.lines = [line for files in job["files"] for name in files for line in examples[name]]
        self.rows = {}

    def param(self, name):
        return self.job["accessor"]["accessor.ctr_accessor_param." + name]

    def score(self, show, click):
        return (show - click) * self.param("nonclk_coeff") + click * self.param("click_coeff")

    def train(self):
        for keys, show, click in self.lines:
            for key in keys:
                row = self.rows.setdefault(
                    key, {"show": 0, "click": 0, "count": 0, "unseen": 0, "delta": 0}
                )
                row["show"] += show
                row["click"] += click
                row["count"] += 1
                row["unseen"] = 0
                row["delta"] += self.score(show, click)

    def shrink(self):
        for key, row in list(self.rows.items()):
            row["show"] *= self.param("show_click_decay_rate")
            row["click"] *= self.param("show_click_decay_rate")
            if self.score(row["show"], row["click"]) < self.param("delete_threshold") or row[
                "unseen"
            ] > self.param("delete_after_unseen_days"):
                del self.rows[key]

    def save(self, mode):
        """The rows that are saved."""
        out = {}
        for key, row in self.rows.items():
            if mode in (1, 2):
                least = 0.0 if mode == 2 else self.param("delta_threshold")
                if (
                    self.score(row["show"], row["click"]) < self.param("base_threshold")
                    or row["delta"] < least
                    or row["unseen"] > self.param("delta_keep_days")
                ):
                    continue
            out[key] = dict(row)
        for key, row in self.rows.items():
            if mode == 3:
                row["unseen"] += 1
                out[key] = dict(row)
            elif mode in (1, 2) and key in out:
                row["delta"] = 0
        return out

    def look(self):
        if self.job["table"] == "ctr":
            return [
                [row["show"], row["click"]] if (row := self.rows.get(key)) else [0, 0]
                for key in range(KEYS)
            ]
        counts = [self.rows[key]["count"] if key in self.rows else 0 for key in range(KEYS)]
        if self.job["mode"] == "geo":
            return [[-count / self.job["trainers"]] for count in counts]
        return [[-count] for count in counts]


def shows_of(job, look):
    return [row[:2] for row in look] if job["table"] == "ctr" else look


def compare_look(job, what, look, judge):
    got, wanted = np.array(shows_of(job, look), float), np.array(judge.look(), float)
    if (
        job["mode"] == "half_async"
    ):  # the mean of threads that step together, of which nobody knows how many
        threads = job["threads"]
        ok = (got >= wanted - 1e-4) & (got <= wanted / threads + 1e-4)
        return None if ok.all() else f"{what}: {got[~ok][0]} for {wanted[~ok][0]}"
    if job["table"] == "filter":  # pushes are counted until there is a row, by the server that has it
        ok = (got >= wanted - 1e-4) & (got <= 0)
        return None if ok.all() else f"{what}: {got[~ok][0]} for {wanted[~ok][0]}"
    if (
        job["mode"] == "geo" and job["trainers"] > 1
    ):  # what is not sent of a row goes with what moves it next
        ok = (got <= wanted + 1e-4) & (got >= wanted * job["trainers"] - 1e-4)
        return None if ok.all() else f"{what}: {got[~ok][0]} for {wanted[~ok][0]}"
    return compare(what, got, wanted, 1e-5)


def judge_job(job, judge, said, saves):
    total, looks = len(judge.lines), []
    for day in range(job["days"]):
        judge.train()
        for end in job["ends_of_days"][day]:
            if end == "look":
                looks.append(judge.look())
                for rank, one in enumerate(said):
                    if wrong := compare_look(
                        job, f"day {day}, trainer {rank}", one["looks"][len(looks) - 1], judge
                    ):
                        return wrong
            elif end == "shrink":
                judge.shrink()
            else:
                saves[f"day-{day}-{end}"] = (end, judge.save(end))
    for rank, one in enumerate(said):
        if any(size != total for size in one["sizes"]) and not job["kill"]:
            return f"trainer {rank} has {one['sizes']} examples in memory instead of {total}"
        if wrong := compare_look(job, f"at the end, trainer {rank}", one["looks"][-1], judge):
            return wrong
    return None


def run(turn):
    job = make_job(turn.random)
    examples = make_examples(turn.random, job)
    for name, lines in examples.items():
        text = [
            f"{len(keys)} {' '.join(map(str, keys))} 1 {show} 1 {click}\n" for keys, show, click in lines
        ]
        (turn.directory / name).write_text("".join(text))
    judge, saves = Judge(job, examples), {}
    wrong, said, _ = ps_jobs.start(turn, job, "first", SCRIPT)
    wrong = wrong or judge_job(job, judge, said, saves)
    if not wrong and saves and job["mode"] in ("sync", "async") and job["table"] != "filter":
        name = turn.random.choice(list(saves))
        mode, rows = saves[name]
        second = ps_jobs.job_from_save(turn, job, name, mode)
        judge = Judge(second, examples)
        judge.rows = {key: dict(row) for key, row in rows.items()}
        wrong, said, _ = ps_jobs.start(turn, second, "second", SCRIPT)
        wrong = wrong or judge_job(second, judge, said, {})
        wrong = wrong and f"from {name}: {wrong}"
    if wrong and os.environ.get("KEEP"):
        shutil.copytree(
            turn.directory, pathlib.Path(os.environ["KEEP"]) / f"counts-{turn.number}", dirs_exist_ok=True
        )
    return wrong


def summary():
    return f"{state['jobs']} jobs, {state['values']} values compared, {state['killed']} processes killed"


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, run, count=100, summary=summary))

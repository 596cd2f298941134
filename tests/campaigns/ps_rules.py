#!/usr/bin/env python3
"""usage: tests/campaigns/ps_rules.py [--count N] [--seed N] [--only N] [--fleetrun PATH]

Each run is a job of parameter servers as users of Paddle write them (ps_rules_train.py, by
`fleetrun --compat=paddle`), in sync mode, with random choices: tables with the accessors and rules of
Paddle's parameter server (sparse_table_configs, fleet_desc_configs), embedx thresholds, entries, shows and
clicks, days that end with a shrink and saves of all modes, readers in Python, awk and gzip, evaluation, a
second job that goes on from a save on another number of servers, servers that are killed, and servers that
move between processes while trainers train (`fleetrun ps resize`).

What it learns has to be what numpy makes of the same examples in float64 (ps_rules_judge.py): the loss of
each batch, every row with its statistics, which rows there are, and the AUC of what all trainers have seen.
"""

import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

import campaign
import ps_jobs
from ps_jobs import compare, printed, state
from ps_rules_judge import Judge

SCRIPT = pathlib.Path(__file__).with_name("ps_rules_train.py")
READER = """
import sys
import paddle.distributed.fleet as fleet


class Reader(fleet.MultiSlotDataGenerator):
    def generate_sample(self, line):
        def read():
            *slots, show, click, label = line.rstrip("\\n").split("\\t")
            yield [
                *((f"C{i}", [int(key) for key in keys.split(",")]) for i, keys in enumerate(slots)),
                ("show", [float(show)]), ("click", [float(click)]), ("label", [int(label)])]

        return read


Reader().run_from_stdin()
"""
PIPES = {
    "cat": "cat",
    "gzip": "cat",
    "awk": 'awk -F\'\\t\' \'{ for (i = 1; i <= NF; i++) { n = split($i, v, ","); printf "%d ", n;'
    ' for (j = 1; j <= n; j++) printf "%s ", v[j] } print "" }\'',
    "python": f"{sys.executable} reader.py",
}
NAMES = {
    "naive": "SparseNaiveSGDRule",
    "adagrad": "SparseAdaGradSGDRule",
    "std_adagrad": "StdAdaGradSGDRule",
    "adam": "SparseAdamSGDRule",
    "shared_adam": "SparseSharedAdamSGDRule",
}
DESC = {
    "nonclk_coeff": 0.1,
    "click_coeff": 1.0,
    "base_threshold": 1.5,
    "delta_threshold": 0.25,
    "delta_keep_days": 16,
    "show_click_decay_rate": 0.98,
    "delete_threshold": 0.8,
    "delete_after_unseen_days": 30,
}
TABLE = {
    "nonclk_coeff": 0.1,
    "click_coeff": 1.0,
    "base_threshold": 0.0,
    "delta_threshold": 0.0,
    "delta_keep_days": 16,
    "show_click_decay_rate": 1.0,
    "delete_threshold": 0.0,
    "delete_after_unseen_days": 30,
}


def rule_of(random):
    """[name, options, bounds]"""
    kind = random.choice(list(NAMES))
    options = {"learning_rate": random.choice([0.05, 0.1])}
    if group_of([kind]) == "naive" and random.random() < 0.4:
        options = {}
    if "adagrad" in kind and random.random() < 0.7:
        options["initial_g2sum"] = random.choice([0.5, 1.0])
    if "adam" in kind:
        options = {"learning_rate": 0.02, "ada_epsilon": 1e-3}
        if random.random() < 0.5:
            options |= {"beta1_decay_rate": 0.8, "beta2_decay_rate": 0.99}
    return [kind, options, random.choice([[-10.0, 10.0], [-0.2, 0.3]])]


def group_of(rule):
    return {"naive": "naive", "adagrad": "adagrad", "std_adagrad": "adagrad"}.get(rule[0], "adam")


def accessor_of(random, defaults):
    """(what is given, all of it)"""
    choices = {
        "nonclk_coeff": [0.25, 0.5],
        "click_coeff": [1.0, 2.0],
        "base_threshold": [0.0, 1.0, 2.5],
        "delta_threshold": [0.0, 0.6, 1.5],
        "delta_keep_days": [1, 16],
        "show_click_decay_rate": [1.0, 0.5],
        "delete_threshold": [0.0, 0.4, 1.0],
        "delete_after_unseen_days": [1, 30],
    }
    given = {name: random.choice(values) for name, values in choices.items() if random.random() < 0.6}
    return given, defaults | given


def described_table(random, table, is_shown):
    """A table by fleet_desc_configs: what the script says."""
    given, table["accessor"] = accessor_of(random, DESC)
    said = {f"sparse_{name}": value for name, value in given.items()}
    name = random.choice(["DownpourSparseValueAccessor", "DownpourCtrAccessor", "DownpourUnitAccessor"])
    threshold = random.choice([None, 0.0, 1.0, 3.0])
    said |= {"sparse_accessor_class": name} | (
        {} if threshold is None else {"sparse_embedx_threshold": threshold}
    )
    table["accessor"] |= {
        "embedx_threshold": 10.0 if threshold is None else threshold,
        "zero_init": table["width"] > 1,
        "show_scale": name != "DownpourUnitAccessor",
    }
    table |= {"kind": "ctr" if is_shown else "sparse", "begin": 0.0, "times_batch": True}
    blocks = [""] if name == "DownpourCtrAccessor" else ["embed_", "embedx_"]
    rules = [rule_of(random) for _ in blocks]
    for rule in rules:
        rule[1].setdefault("learning_rate", 0.05)
    epsilon = {rule[1].get("ada_epsilon") for rule in rules} - {None}
    for block, (kind, options, bounds) in zip(blocks, rules):
        said |= {f"{block}sparse_optimizer": kind, f"{block}sparse_initial_range": 0.0}
        said |= {f"{block}sparse_{name}": value for name, value in options.items() if name != "ada_epsilon"}
        said[f"{block}sparse_weight_bounds"] = bounds
    said |= {"sparse_ada_epsilon": epsilon.pop()} if epsilon else {}
    table["embed"], table["embedx"] = rules[0], rules[-1]
    return said


def configured_table(random, table, is_shown):
    """A table by sparse_table_configs: what the script says."""
    given, table["accessor"] = accessor_of(random, TABLE)
    said = {f"accessor.ctr_accessor_param.{name}": value for name, value in given.items()}
    table["accessor"] |= {
        "embedx_threshold": random.choice([0.0, 0.0, 1.0, 3.0]),
        "zero_init": random.random() < 0.3,
        "show_scale": random.random() < 0.7,
    }
    said["accessor.embedx_threshold"] = table["accessor"]["embedx_threshold"]
    for name in ("zero_init", "show_scale"):
        said[f"accessor.ctr_accessor_param.{name}"] = table["accessor"][name]
    said["accessor.accessor_class"] = "CtrCommonAccessor" if is_shown else "SparseAccessor"
    if random.random() < 0.5:
        said["accessor.fea_dim"] = table["width"] + 2
        said["accessor.embedx_dim"] = table["width"] - 1
    table["kind"] = "ctr" if is_shown else "sparse"
    for block in ("embed", "embedx"):
        if random.random() < 0.7:
            kind, options, bounds = table[block] = rule_of(random)
            prefix, group = f"accessor.{block}_sgd_param.", group_of(table[block])
            said |= {f"{prefix}name": NAMES[kind], f"{prefix}{group}.weight_bounds": bounds}
            said |= {f"{prefix}{group}.{name}": value for name, value in options.items()}
            table["times_batch"] = True
    return {f"table_parameters.{table['name']}.{name}": value for name, value in said.items()}


def make_tables(random):
    """(tables, what the strategy says of them)"""
    interface = random.choice(["fleet_desc_configs", "sparse_table_configs", "sparse_table_configs"])
    uses_cvm = random.random() < 0.5
    tables, said = [], {}
    for number in range(random.randint(1, 2)):
        table = {
            "name": f"table{number}",
            "width": random.randint(1, 4),
            "kind": "plain",
            "embed": None,
            "embedx": None,
            "times_batch": False,
            "begin": random.choice([0.0, 0.1, -0.15]),
            "entry": random.choice([None, "counts", "counts", 2, 3, 0.5]),
            "accessor": TABLE | {"embedx_threshold": 0.0, "zero_init": False, "show_scale": True},
        }
        if random.random() < 0.85:
            make = described_table if interface == "fleet_desc_configs" else configured_table
            said[table["name"]] = make(random, table, uses_cvm)
        elif table["entry"] == "counts":
            table["kind"] = "sparse"
        tables.append(table)
    if interface == "fleet_desc_configs" and said:
        said["use_cvm"] = uses_cvm
    return tables, {interface: said} if said else {}


def make_job(random):
    trainers = random.choice([1, 2, 2, 3])
    tables, configs = make_tables(random)
    slots = [*range(len(tables)), *(random.randrange(len(tables)) for _ in range(random.randint(0, 2)))]
    use_cvm = random.random() < 0.6
    inputs = sum(tables[i]["width"] + 2 * (use_cvm and tables[i]["kind"] == "ctr") for i in slots)
    hidden, days, number, files = random.randint(1, 4), random.randint(1, 3), 0, []
    for _ in range(trainers):
        count = random.choice([0, 1, 2, 3]) if trainers > 1 else random.randint(1, 3)
        files.append([f"part-{number + i}" for i in range(count)])
        number += count
    if not number:
        files[0] = ["part-0"]
    pipe = random.choice(list(PIPES))
    files = [[name + (".gz" if pipe == "gzip" else "") for name in each] for each in files]
    draw = lambda rows, columns: [
        [round(random.uniform(-0.6, 0.6), 3) for _ in range(columns)] for _ in range(rows)
    ]
    ends = ["look", "shrink", "evaluate", 0, 1, 2, 3]
    optimizer = random.choice(
        [
            ["SGD", {}],
            ["Momentum", {"momentum": 0.8}],
            ["Adagrad", {"initial_accumulator_value": 0.1}],
            ["Adam", {"lazy_mode": True, "epsilon": 1e-3}],
        ]
    )
    job = {
        "seed": random.randrange(1, 1000),
        "trainers": trainers,
        "servers": random.randint(1, 3),
        "keys": 30,
        "slots": slots,
        "tables": tables,
        "configs": configs,
        "use_cvm": use_cvm,
        "hidden": hidden,
        "weights": {"w1": draw(inputs, hidden), "b1": draw(1, hidden)[0], "w2": draw(hidden, 1)},
        "optimizer": optimizer,
        "rate": 0.02 if optimizer[0] == "Adam" else 0.1,
        "schedule": random.choice([None, None, 0.5]),
        "batch": random.choice([1, 3, 7, 16, 64]),
        "threads": random.choice([1, 1, 2, 3]),
        "dataset": "QueueDataset",
        "once": random.random() < 0.5,
        "reads": pipe,
        "pipe": PIPES[pipe],
        "files": files,
        "test_files": ["test-0"],
        "test_batch": 6,
        "days": days,
        "ends_of_days": [random.sample(ends, random.randint(0, 3)) for _ in range(days)],
        "load": None,
        "init_model": None,
        "load_mode": 0,
        "served": random.choice([None, None, 0, 2]),
        "slow": 0.0,
        "kill": [],
        "flags": [],
        "resize": [],
    }
    if random.random() < 0.3:
        job["dataset"], job["threads"] = "InMemoryDataset", 1
    kept = [
        "--ps_checkpoint=kept",
        "--max_restart=20",
        "--restart_backoff=0",
        f"--ps_checkpoint_interval={random.choice([1, 60])}",
    ]
    if random.random() < 0.4:
        job["slow"], job["flags"] = 0.01, kept
        if random.random() < 0.6:
            job["servers"], job["slow"] = f"{random.choice([1, 2, 3])}:3", 0.04
            job["resize"] = [[random.uniform(0.3, 1.0), random.randint(1, 3)] for _ in range(2)]
        if random.random() < 0.5 if job["resize"] else job["servers"] > 1:
            job["flags"] = [*kept, "--ps_replicas=1"]
        if random.random() < 0.6:
            job["kill"] = [("PSERVER", 0, random.uniform(0.3, 0.9)) for _ in range(random.randint(1, 2))]
    return job


def make_examples(random, job):
    """{file: [(keys of each slot, show, click, label)]}"""
    out = {}
    for name in [*(name for files in job["files"] for name in files), *job["test_files"]]:
        out[name] = []
        for _ in range(random.choice([0, 1, 6, 15, 30])):
            keys = [
                [random.randrange(job["keys"]) for _ in range(random.randint(1, 4))] for _ in job["slots"]
            ]
            show, click = random.choice([(1, 0), (1, 1), (3, 1), (0, 0)])
            chance = 0.2 + 0.6 * (keys[0][0] % 3 == 0)
            out[name].append((keys, show, click, int(random.random() < chance)))
    if not any(out[name] for files in job["files"] for name in files) or not out["test-0"]:
        return make_examples(random, job)
    return out


def write_examples(turn, job, examples):
    (turn.directory / "reader.py").write_text(READER)
    for name, lines in examples.items():
        text = []
        for keys, *others in lines:
            if job["reads"] in ("awk", "python"):
                text.append(
                    "\t".join([*(",".join(map(str, each)) for each in keys), *map(str, others)]) + "\n"
                )
            else:
                words = [" ".join(map(str, [len(each), *each])) for each in keys]
                text.append(" ".join([*words, *(f"1 {value}" for value in others)]) + "\n")
        write = gzip.open if name.endswith(".gz") else open
        with write(turn.directory / name, "wt") as file:
            file.write("".join(text))


def compare_look(what, got, wanted):
    for name, rows in wanted.items():
        if not isinstance(rows, dict):
            wrong = compare(f"{what}, {name}", got[name], rows)
        elif sorted(map(int, got[name])) != sorted(rows):
            wrong = f"{what}, {name}: rows {sorted(map(int, got[name]))} instead of {sorted(rows)}"
        else:
            keys = sorted(rows)
            wrong = compare(
                f"{what}, {name}", [got[name][str(key)] for key in keys], [rows[key] for key in keys]
            )
        if wrong:
            return wrong
    return None


def judge_job(job, judge, said, logs, saves):
    passes, looks, aucs = [printed(log) for log in logs], [], []
    for day in range(job["days"]):
        wanted = judge.train()
        for rank in range(job["trainers"]):
            state["batches"] += len(wanted[rank])
            if wrong := compare(f"losses of day {day}, trainer {rank}", passes[rank][day], wanted[rank]):
                return wrong
        aucs.append(judge.auc())
        for end in job["ends_of_days"][day]:
            if end == "look":
                looks.append(judge.save(0).look())
            elif end == "evaluate":
                judge.evaluate()
                aucs.append(judge.auc())
            elif end == "shrink":
                for table in judge.tables:
                    table.shrink()
            else:
                saves[f"day-{day}-{end}"] = (end, judge.save(end))
    looks.append(judge.look())
    for rank, one in enumerate(said):
        for number, (got, (least, most)) in enumerate(zip(one["aucs"], aucs, strict=True)):
            state["values"] += 1
            if not least - 1e-6 <= got <= most + 1e-6:
                return f"AUC {number}, trainer {rank}: {got:.7g} instead of {least:.7g} to {most:.7g}"
        for number, wanted in enumerate(looks):
            if wrong := compare_look(f"look {number}, trainer {rank}", one["looks"][number], wanted):
                return wrong
    return None


def predict(turn, job, judge, examples):
    """Without servers, from the rows that were saved for that."""
    lines = [line for name in job["test_files"] for line in examples[name]]
    asked = {}
    for slot in range(len(job["slots"])):
        keys = [keys[slot] for keys, *_ in lines]
        asked[f"C{slot}"] = ("int64", [[key] for each in keys for key in each], [len(each) for each in keys])
    for number, name in ((1, "show"), (2, "click")):
        asked[name] = ("float32", [[line[number]] for line in lines], None)
    wrong, got = ps_jobs.ask(turn, asked)
    if wrong:
        return wrong
    state["predictions"] += len(lines)
    return compare("predictions", got, judge.save(job["served"]).forward(lines)[3].ravel())


def resize_some(turn, job):
    for delay, processes in job["resize"]:
        time.sleep(delay)
        words = [turn.options.fleetrun, "ps", "resize", str(processes), f"--job={job['id']}"]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, env=turn.environment())
        state["resized"] = state.get("resized", 0) + (b"done in " in done.stdout + done.stderr)


def start(turn, job, name):
    job["id"] = turn.mark.replace("CAMPAIGN_MARK=", "rules-")
    resizing = threading.Thread(target=resize_some, args=(turn, job))
    resizing.start()
    try:
        return ps_jobs.start(turn, {**job, "flags": [*job["flags"], f"--job_id={job['id']}"]}, name, SCRIPT)
    finally:
        resizing.join()


def run(turn):
    job = make_job(turn.random)
    examples = make_examples(turn.random, job)
    write_examples(turn, job, examples)
    judge, saves = Judge(job, examples), {}
    wrong, said, logs = start(turn, job, "first")
    wrong = wrong or judge_job(job, judge, said, logs, saves)
    if not wrong and job["served"] is not None:
        wrong = predict(turn, job, judge, examples)
    if not wrong and saves:
        name = turn.random.choice(list(saves))
        mode, saved = saves[name]
        second = ps_jobs.job_from_save(turn, job, name, mode, resize=[], served=None)
        wrong, said, logs = start(turn, second, "second")
        wrong = wrong or judge_job(second, saved.begin_again(second), said, logs, {})
        wrong = wrong and f"from {name}: {wrong}"
    if wrong and os.environ.get("KEEP"):
        kept = pathlib.Path(os.environ["KEEP"]) / f"rules-{turn.number}"
        shutil.copytree(turn.directory, kept, dirs_exist_ok=True)
    return wrong


def summary():
    return (
        f"{state['jobs']} jobs, {state['batches']} batches, {state['values']} values compared, "
        f"{state['predictions']} predictions, "
        f"{state['killed']} servers killed, {state.get('resized', 0)} times resized"
    )


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, run, count=100, summary=summary))

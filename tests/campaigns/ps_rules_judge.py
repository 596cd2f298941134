"""What the tables of ps_rules_train.py have to hold: the accessors and rules of Paddle's parameter server in
numpy's float64, written from its sources and from what fleetrun-tables(7) says of steps and days."""

import copy
import itertools
import math

import numpy as np
from ps_jobs_judge import cut

EPSILON = 1e-4  # of log_loss
ROUNDING = 1e-5  # of a prediction


MASK = (1 << 64) - 1


def mixed(word):
    """The finalizer of SplitMix64."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ word >> 27) * 0x94D049BB133111EB & MASK
    return word ^ word >> 31


def is_drawn(seed, key, probability):
    """Whether ProbabilityEntry gives the key a row: on any server, and in any job with this seed."""
    word = mixed((mixed(seed + 0x9E3779B97F4A7C15 & MASK) + mixed(key ^ 0xA0761D6478BD642F)) & MASK)
    return (word >> 11) * 2.0**-53 < probability


class Rule:
    """One part of a row, and how it moves. `rule`: [name, options, [least, most]] of a table, or the script's
    optimizer where that is None."""

    def __init__(self, rule, optimizer, rate):
        self.rate = rate  # where the rule does not say one
        self.kind, self.options, self.bounds = rule or [*optimizer, None]
        self.is_own = rule is not None

    def first_state(self, width):
        beta = [self.options.get("beta1_decay_rate", 0.9), self.options.get("beta2_decay_rate", 0.999)]
        first = self.options.get("initial_accumulator_value", 0.0)
        one = width if self.kind != "shared_adam" else 1
        return {"m": np.full(one, first), "v": np.zeros(one), "g2": np.zeros(width), "n": 0, "powers": beta}

    def move(self, w, state, g, scale, rate):
        """The new values."""
        take = self.options.get
        if self.is_own:
            rate = take("learning_rate", self.rate)
        if self.kind in ("naive", "SGD"):
            w = w - rate * g
        elif self.kind in ("adagrad", "std_adagrad"):
            first, g = take("initial_g2sum", 3.0), g / scale
            w = w - rate * g * np.sqrt(first / (first + state["g2"]))
            state["g2"] = state["g2"] + (np.mean(g**2) if self.kind == "adagrad" else g**2)
        elif self.kind in ("adam", "shared_adam"):
            beta1, beta2 = take("beta1_decay_rate", 0.9), take("beta2_decay_rate", 0.999)
            m = beta1 * state["m"] + (1 - beta1) * g
            v = beta2 * state["v"] + (1 - beta2) * g**2
            power1, power2 = state["powers"]
            w = w - rate * math.sqrt(1 - power2) / (1 - power1) * m / (np.sqrt(v) + take("ada_epsilon", 1e-8))
            state["powers"] = [power1 * beta1, power2 * beta2]
            mean = (lambda each: np.array([each.mean()])) if self.kind == "shared_adam" else np.array
            state["m"], state["v"] = mean(m), mean(v)
        elif self.kind == "Momentum":
            state["m"] = take("momentum", 0.9) * state["m"] + g
            w = w - rate * state["m"]
        elif self.kind == "Adagrad":
            state["m"] = state["m"] + g**2
            w = w - rate * g / (np.sqrt(state["m"]) + take("epsilon", 1e-6))
        elif self.kind == "Adam":
            state["n"] += 1
            beta1, beta2 = take("beta1", 0.9), take("beta2", 0.999)
            state["m"] = beta1 * state["m"] + (1 - beta1) * g
            state["v"] = beta2 * state["v"] + (1 - beta2) * g**2
            root = math.sqrt(1 - beta2 ** state["n"])
            moved = state["m"] / (np.sqrt(state["v"]) + take("epsilon", 1e-8) * root)
            w = w - rate * root / (1 - beta1 ** state["n"]) * moved
        else:
            raise ValueError(self.kind)
        return w if self.bounds is None else np.clip(w, *self.bounds)


class Table:
    """Rows with statistics, by key."""

    def __init__(self, table, job):
        self.seed = job["seed"]
        self.table, self.accessor, self.kind = table, table["accessor"], table["kind"]
        self.rules = [Rule(table[part], job["optimizer"], job["rate"]) for part in ("embed", "embedx")]
        self.parts = [slice(0, 1), slice(1, table["width"])]
        if self.kind == "plain":
            self.rules, self.parts = self.rules[:1], [slice(0, table["width"])]
        elif table["width"] == 1:
            self.rules, self.parts = self.rules[:1], self.parts[:1]
        self.rows, self.pushes = {}, {}

    def of(self, name):
        return self.accessor[name]

    def score(self, show, click):
        return (show - click) * self.of("nonclk_coeff") + click * self.of("click_coeff")

    def new_row(self):
        begin = np.full(self.table["width"], float(np.float32(self.table["begin"])))
        extended = self.kind == "plain" or self.of("embedx_threshold") <= 0.0
        if self.kind != "plain" and self.of("zero_init"):
            begin[0] = 0.0
        if not extended:
            begin[1:] = 0.0
        states = [rule.first_state(part.stop - part.start) for rule, part in zip(self.rules, self.parts)]
        return {
            "w": begin,
            "show": 0.0,
            "click": 0.0,
            "unseen": 0,
            "delta": 0.0,
            "extended": extended,
            "states": states,
        }

    def pull(self, key):
        """(show and click where the table shows them, and the values)"""
        row = self.rows.get(key) or self.new_row()
        return np.array([row["show"], row["click"], *row["w"]] if self.kind == "ctr" else row["w"])

    def push(self, key, gradient, show, click, rate):
        entry = self.table["entry"]
        if key not in self.rows:
            if isinstance(entry, float) and not is_drawn(self.seed, key, entry):
                return
            if isinstance(entry, int) and entry > 0:
                self.pushes[key] = self.pushes.get(key, 0) + 1
                if self.pushes[key] < entry:
                    return
                del self.pushes[key]  # once its row has gone it is counted anew
            self.rows[key] = self.new_row()
        row = self.rows[key]
        if self.kind == "plain":
            row["w"] = self.rules[0].move(row["w"], row["states"][0], gradient, 1.0, rate)
            return
        row["show"] += show
        row["click"] += click
        row["delta"] += self.score(show, click)
        row["unseen"] = 0
        scales = (self.kind == "sparse" or self.of("show_scale")) and show > 0
        for number, (rule, part) in enumerate(zip(self.rules, self.parts)):
            if number == 0 or row["extended"]:
                row["w"][part] = rule.move(
                    row["w"][part], row["states"][number], gradient[part], show if scales else 1.0, rate
                )
        if not row["extended"] and self.score(row["show"], row["click"]) >= self.of("embedx_threshold"):
            row["extended"] = True
            row["w"][1:] = float(np.float32(self.table["begin"]))

    def shrink(self):
        if self.kind == "plain":
            return
        for key, row in list(self.rows.items()):
            row["show"] *= self.of("show_click_decay_rate")
            row["click"] *= self.of("show_click_decay_rate")
            least, days = self.of("delete_threshold"), self.of("delete_after_unseen_days")
            if self.score(row["show"], row["click"]) < least or row["unseen"] > days:
                del self.rows[key]

    def save(self, mode):
        """The table as it is saved."""
        saved = copy.deepcopy(self)
        if mode in (1, 2):
            saved.pushes = {}  # such a save is of rows alone
        if self.kind == "plain":
            return saved
        for key, row in self.rows.items():
            if mode == 3:
                row["unseen"] += 1
                saved.rows[key]["unseen"] += 1
            elif mode in (1, 2):
                least = 0.0 if mode == 2 else self.of("delta_threshold")
                if (
                    self.score(row["show"], row["click"]) < self.of("base_threshold")
                    or row["delta"] < least
                    or row["unseen"] > self.of("delta_keep_days")
                ):
                    del saved.rows[key]
                else:
                    row["delta"] = 0.0
        return saved

    def look(self):
        statistics = ["unseen", "delta", "show", "click"] if self.kind != "plain" else []
        return {key: [*(row[each] for each in statistics), *row["w"]] for key, row in self.rows.items()}


def share(clicks, others):
    """As the counters see them: 4096 buckets."""
    clicks, others = (clicks * 4095).astype(int), (others * 4095).astype(int)
    return float(np.mean((clicks > others) + 0.5 * (clicks == others)))


class Judge:
    """The model. `examples`: {file: [(keys of each slot, show, click, label)]}."""

    def __init__(self, job, examples):
        self.job, self.examples = job, examples
        self.tables = [Table(table, job) for table in job["tables"]]
        weights = {
            name: np.array(value, "float32").astype("float64") for name, value in job["weights"].items()
        }
        self.weights, self.rule = weights, Rule(None, job["optimizer"], job["rate"])
        self.states = {name: self.rule.first_state(value.size) for name, value in weights.items()}
        self.predicted = []
        self.at = 0  # where the schedule is

    def save(self, mode):
        out = copy.copy(self)
        out.tables = [table.save(mode) for table in self.tables]
        out.weights, out.states = copy.deepcopy(self.weights), copy.deepcopy(self.states)
        return out

    def begin_again(self, job):
        """The same tables in another job."""
        out = copy.deepcopy(self)
        out.job, out.predicted, out.at = job, [], 0
        return out

    def forward(self, batch):
        shown, parts = self.job["use_cvm"], []
        for slot, number in enumerate(self.job["slots"]):
            table = self.tables[number]
            rows = np.array([sum(table.pull(key) for key in keys[slot]) for keys, *_ in batch])
            if table.kind == "ctr":
                logs = np.log(rows[:, :2] + 1.0)
                logs[:, 1] -= logs[:, 0]
                rows = np.concatenate([logs, rows[:, 2:]], axis=1) if shown else rows[:, 2:]
            parts.append(rows)
        x = np.concatenate(parts, axis=1)
        hidden = np.tanh(x @ self.weights["w1"] + self.weights["b1"])
        predict = 1.0 / (1.0 + np.exp(-hidden @ self.weights["w2"]))
        return [part.shape[1] for part in parts], x, hidden, predict

    def look_at(self, batch):
        """The loss; what is predicted counts for the next AUC."""
        labels = np.array([[label] for *_, label in batch])
        predict = self.forward(batch)[3]
        self.predicted += zip(predict.ravel().tolist(), labels.ravel().tolist())
        hit, missed = np.log(predict + EPSILON), np.log(1.0 - predict + EPSILON)
        return float(np.mean(-labels * hit - (1 - labels) * missed))

    def gradients(self, batch):
        """{dense parameter: gradient}, {table: {key: [gradient, shows, clicks]}}"""
        widths, x, hidden, predict = self.forward(batch)
        labels = np.array([[label] for *_, label in batch])
        d_predict = ((1 - labels) / (1 - predict + EPSILON) - labels / (predict + EPSILON)) / len(batch)
        d_out = d_predict * predict * (1.0 - predict)
        d_hidden = (d_out @ self.weights["w2"].T) * (1.0 - hidden**2)
        dense = {"w2": hidden.T @ d_out, "w1": x.T @ d_hidden, "b1": d_hidden.sum(axis=0)}
        d_x, begin, sparse = d_hidden @ self.weights["w1"].T, 0, {}
        for slot, number in enumerate(self.job["slots"]):
            table, begin = self.tables[number], begin + widths[slot]
            width = table.table["width"]
            for i, (keys, show, click, _) in enumerate(batch):
                part = d_x[i, begin - width : begin] * (len(batch) if table.table["times_batch"] else 1.0)
                for key in keys[slot]:
                    of_key = sparse.setdefault(number, {}).setdefault(key, [np.zeros(width), 0.0, 0.0])
                    counted = (show, click) if table.table["entry"] == "counts" else (1.0, 0.0)
                    for at, value in enumerate((part, *counted)):
                        of_key[at] = of_key[at] + value
        return dense, sparse

    def step(self, batches):
        """One step of all who have a batch: gradients are averaged, shows and clicks added up."""
        rate = self.job["rate"] * (self.job["schedule"] or 1.0) ** self.at
        parts = [self.gradients(batch) for batch in batches]
        for number, table in enumerate(self.tables):
            sums = {}
            for _, sparse in parts:
                for key, each in sparse.get(number, {}).items():
                    sums[key] = [a + b for a, b in zip(sums[key], each)] if key in sums else each
            for key, (gradient, show, click) in sums.items():
                table.push(key, gradient / len(parts), show, click, rate)
        for name, value in self.weights.items():
            gradient = sum(dense[name] for dense, _ in parts) / len(parts)
            moved = self.rule.move(value.ravel(), self.states[name], gradient.ravel(), 1.0, rate)
            self.weights[name] = moved.reshape(value.shape)

    def threads(self, files):
        """What each thread of a trainer reads, in batches."""
        count = max(1, min(self.job["threads"], len(files)))
        for thread in range(count):
            lines = itertools.chain.from_iterable(self.examples[name] for name in files[thread::count])
            yield cut(list(lines), self.job["batch"])

    def train(self):
        """A pass of all trainers; {rank: the losses of its first thread}."""
        every = [
            (rank, thread, batches)
            for rank, files in enumerate(self.job["files"])
            for thread, batches in enumerate(self.threads(files))
        ]
        losses = {rank: [] for rank, *_ in every}
        for step in range(max(len(batches) for *_, batches in every)):
            now = [(rank, thread, each[step]) for rank, thread, each in every if step < len(each)]
            for rank, thread, batch in now:
                loss = self.look_at(batch)
                if thread == 0:
                    losses[rank].append(loss)
            self.step([batch for *_, batch in now])
        self.at += 1
        return losses

    def evaluate(self):
        """Each trainer looks at all of the test files."""
        lines = list(itertools.chain.from_iterable(self.examples[name] for name in self.job["test_files"]))
        for _ in range(self.job["trainers"]):
            self.look_at(lines)

    def auc(self):
        """Of what was predicted since the last one: the share of pairs in the right order, ties half. (least,
        most): what is near the edge of a bucket is in either."""
        clicks = np.array([each for each, label in self.predicted if label])
        others = np.array([each for each, label in self.predicted if not label])
        self.predicted = []
        if not len(clicks) or not len(others):
            return 0.5, 0.5
        clicks, others = clicks[:, None], others[None]
        return share(clicks - ROUNDING, others + ROUNDING), share(clicks + ROUNDING, others - ROUNDING)

    def look(self):
        return {table.table["name"]: table.look() for table in self.tables} | self.weights

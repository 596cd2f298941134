"""What the model of ps_jobs_train.py has to learn: the same steps in numpy's float64, written from Paddle's
formulas and from what fleetrun-modes(7) and fleetrun-tables(7) say of steps and of rows."""

import copy
import itertools
import math

import numpy as np

POOL = {
    "sum": lambda count: 1.0,
    "average": lambda count: 1.0 / count,
    "sqrt": lambda count: 1.0 / math.sqrt(count),
}


class Judge:
    """The parameters, and how they move. `examples`: {file: [(keys of each slot, dense values, label)]}."""

    def __init__(self, job, examples):
        self.job, self.examples = job, examples
        self.values = {
            name: np.array(value, "float32").astype("float64") for name, value in job["weights"].items()
        }
        self.is_sparse = {name: False for name in self.values}
        for number in set(job["slots"]):
            table = job["tables"][number]
            self.values[table["name"]] = np.full(
                [job["keys"], job["width"]], np.float32(table["begin"]), "float64"
            )
            self.is_sparse[table["name"]] = job["lookup"] != "dense"
        self.state = {name: {} for name in self.values}

    def begin_again(self, job):
        """The same parameters in another job, which has the state of optimizers where that one kept it."""
        out = copy.deepcopy(self)
        out.job = job
        return out

    def forward(self, batch):
        job, values = self.job, self.values
        pooled, weights = [], []
        for slot, number in enumerate(job["slots"]):
            table = values[job["tables"][number]["name"]]
            scales = [POOL[job["pool"]](len(keys[slot])) if job["many"] else 1.0 for keys, _, _ in batch]
            pooled.append(
                np.array(
                    [scale * table[keys[slot]].sum(axis=0) for (keys, _, _), scale in zip(batch, scales)]
                )
            )
            weights.append(scales)
        dense = [np.array([values for _, values, _ in batch])] if job["dense"] else []
        x = np.concatenate([*pooled, *dense], axis=1)
        hidden = np.tanh(x @ values["w1"] + values["b1"])
        return x, hidden, hidden @ values["w2"], weights

    def loss(self, batch):
        labels = np.array([[label] for _, _, label in batch])
        return float(np.mean((self.forward(batch)[2] - labels) ** 2))

    def gradients(self, batch):
        """{name: gradient}, {name: whether a row is touched}"""
        job, values = self.job, self.values
        x, hidden, out, weights = self.forward(batch)
        labels = np.array([[label] for _, _, label in batch])
        d_out = 2.0 * (out - labels) / len(batch)
        d_hidden = (d_out @ values["w2"].T) * (1.0 - hidden**2)
        found = {"w2": hidden.T @ d_out, "w1": x.T @ d_hidden, "b1": d_hidden.sum(axis=0)}
        touched = {name: True for name in found}
        d_x = d_hidden @ values["w1"].T
        for slot, number in enumerate(job["slots"]):
            name = job["tables"][number]["name"]
            gradient = found.setdefault(name, np.zeros_like(values[name]))
            rows = touched.setdefault(name, np.zeros(len(gradient), bool))
            for i, (keys, _, _) in enumerate(batch):
                for key in keys[slot]:
                    part = d_x[i, slot * job["width"] : (slot + 1) * job["width"]]
                    gradient[key] += weights[slot][i] * part
                    rows[key] = True
        return found, {name: rows if self.is_sparse[name] else True for name, rows in touched.items()}

    def clip(self, gradients):
        if not self.job["clip"]:
            return
        kind, *numbers = self.job["clip"]
        own = self.job["own"]
        names = [name for name in gradients if own.get(name, {}).get("clip", True)]
        if kind == "ClipGradByValue":
            most, least = numbers[0], numbers[1] if len(numbers) > 1 else -numbers[0]
            for name in names:
                np.clip(gradients[name], least, most, out=gradients[name])
            return
        norms = {name: np.sqrt(np.sum(gradients[name] ** 2)) for name in names}
        whole = math.sqrt(sum(norm**2 for norm in norms.values()))
        for name in names:
            norm = norms[name] if kind == "ClipGradByNorm" else whole
            gradients[name] *= numbers[0] / max(norm, numbers[0])

    def step(self, batches, rate):
        """One step of all who have a batch."""
        parts = [self.gradients(batch) for batch in batches]
        means_are_clipped = self.job["mode"] == "sync"
        if not means_are_clipped:
            for gradients, _ in parts:
                self.clip(gradients)
        means = {name: sum(gradients[name] for gradients, _ in parts) / len(parts) for name in parts[0][0]}
        touched = {name: np.logical_or.reduce([rows[name] for _, rows in parts]) for name in means}
        if means_are_clipped:
            self.clip(means)
        for name, gradient in means.items():
            self.move(name, gradient, touched[name], rate)

    def move(self, name, gradient, touched, rate):
        own = self.job["own"].get(name, {})
        rate *= own.get("rate", 1.0)
        rows = np.ones(len(gradient), bool) if touched is np.True_ or touched is True else touched
        value, gradient = self.values[name][rows], gradient[rows]
        kind, options = self.job["optimizer"]
        decay = own.get("decay", self.job["decay"]) or [None, 0.0]
        if decay[0] == "L2Decay":
            gradient = gradient + decay[1] * value
        elif decay[0] == "L1Decay":
            gradient = gradient + decay[1] * np.sign(value)
        state = self.state[name]
        if not state:
            shape = self.values[name].shape
            first = options.get("initial_accumulator_value", 0.0)
            state.update(
                m=np.full(shape, first if kind == "Adagrad" else 0.0),
                v=np.zeros(shape),
                n=np.zeros([shape[0]] + [1] * (len(shape) - 1)),
            )
        state["n"][rows] += 1
        m, v, n = state["m"][rows], state["v"][rows], state["n"][rows]
        if kind == "SGD":
            value = value - rate * gradient
        elif kind == "Momentum":
            mu = options.get("momentum", 0.9)
            m = mu * m + gradient
            value = value - rate * (gradient + mu * m if options.get("use_nesterov") else m)
        elif kind == "Adagrad":
            m = m + gradient**2
            value = value - rate * gradient / (np.sqrt(m) + options.get("epsilon", 1e-6))
        elif kind in ("Adam", "AdamW"):
            beta1, beta2 = options.get("beta1", 0.9), options.get("beta2", 0.999)
            if kind == "AdamW":
                value = value * (1.0 - rate * options["weight_decay"])
            m, v = beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
            root = np.sqrt(1 - beta2**n)
            value = value - rate * root / (1 - beta1**n) * m / (
                np.sqrt(v) + options.get("epsilon", 1e-8) * root
            )
        elif kind == "Adamax":
            beta1, beta2 = options.get("beta1", 0.9), options.get("beta2", 0.999)
            m, v = beta1 * m + (1 - beta1) * gradient, np.maximum(np.abs(gradient), beta2 * v + 1e-8)
            value = value - rate / (1 - beta1**n) * m / v
        elif kind == "RMSProp":
            rho, mu = options.get("rho", 0.95), options.get("momentum", 0.0)
            m = rho * m + (1 - rho) * gradient**2
            v = mu * v + rate * gradient / np.sqrt(m + options.get("epsilon", 1e-6))
            value = value - v
        elif kind == "Adadelta":
            rho, epsilon = options.get("rho", 0.95), options.get("epsilon", 1e-6)
            m = rho * m + (1 - rho) * gradient**2
            moved = np.sqrt((v + epsilon) / (m + epsilon)) * gradient
            v = rho * v + (1 - rho) * moved**2
            value = value - rate * moved
        else:
            raise ValueError(kind)
        state["m"][rows], state["v"][rows], self.values[name][rows] = m, v, value

    def rate(self, epoch):
        rate, schedule = self.job["rate"], self.job["schedule"]
        if not schedule:
            return rate
        kind, options = schedule
        if kind == "ExponentialDecay":
            return rate * options["gamma"] ** epoch
        if kind == "InverseTimeDecay":
            return rate / (1 + options["gamma"] * epoch)
        if kind == "NaturalExpDecay":
            return rate * math.exp(-options["gamma"] * epoch)
        if kind == "StepDecay":
            return rate * options["gamma"] ** (epoch // options["step_size"])
        if kind == "PolynomialDecay":
            done = min(epoch, options["decay_steps"])
            return (rate - options["end_lr"]) * (1 - done / options["decay_steps"]) + options["end_lr"]
        raise ValueError(kind)

    def threads(self, files):
        """What each thread of a trainer reads, in batches."""
        count = max(1, min(self.job["threads"], len(files)))
        for thread in range(count):
            lines = list(
                itertools.chain.from_iterable(self.examples[name] for name in files[thread::count])
            )
            yield cut(lines, self.job["batch"])

    def train(self, epoch):
        """A pass of all trainers; {rank: the losses of its first thread}."""
        every = [
            (rank, batches)
            for rank, files in enumerate(self.job["files"])
            for batches in self.threads(files)
        ]
        losses, rate = {rank: [] for rank, _ in every}, self.rate(epoch)
        is_first = [i == 0 or every[i - 1][0] != rank for i, (rank, _) in enumerate(every)]
        for step in range(max(len(batches) for _, batches in every)):
            now = [batches[step] if step < len(batches) else None for _, batches in every]
            for (rank, _), batch, first in zip(every, now, is_first):
                if batch is not None and first:
                    losses[rank].append(self.loss(batch))
            self.step([batch for batch in now if batch is not None], rate)
        return losses

    def evaluate(self):
        lines = list(itertools.chain.from_iterable(self.examples[name] for name in self.job["test_files"]))
        return [self.loss(batch) for batch in cut(lines, self.job["test_batch"])]


def cut(lines, batch):
    return [lines[i : i + batch] for i in range(0, len(lines), batch)]

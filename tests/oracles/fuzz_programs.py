#!/usr/bin/env python3
"""Draws random programs and compares what fleetrun gives for them, gradients too, with numpy in float64 or
with another Paddle.

usage: python tests/oracles/fuzz_programs.py [--seed N] [--count N] [--against PYTHON] [--keep FOLDER]

--seed, --count: the programs of the seeds N, N + 1, …. --against: an interpreter with paddlepaddle==2.6.2;
without it numpy says what is right. --keep: each program that fails is made as small as it becomes, and
written there as a script that real Paddle and `fleetrun --compat=paddle` run; without it, it is printed.
--list: only the names that the programs use. Exits 1 when a program fails.
"""

import argparse
import base64
import collections
import contextlib
import importlib
import itertools
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import warnings

import numpy as np

FOLDER = pathlib.Path(__file__).parent / "fuzz"
sys.path.insert(0, str(FOLDER))

import programs  # noqa: E402
import table_layers  # noqa: E402, F401
import table_losses  # noqa: E402, F401
import table_more  # noqa: E402, F401
import table_shapes  # noqa: E402, F401
import table_values  # noqa: E402

# What is wrong in Paddle 2.6.2 itself, and the lines that have it: counted where numpy agrees with us.
DEPARTURES = {
    "pos_weight": r"pos_weight=",
    "layer_norm with a fed scale": r"F\.layer_norm\(",
    "gather along another axis than the first": r"paddle\.(gather|index_select)\(.*axis=[1-9]",
    "expand_as of a size that is not known": r"expand_as\(",
    "steps down of a size that is not known": r"::-\d|paddle\.strided_slice\(",
    "increment that its gradient takes back": r"paddle\.increment\(",
    "diff of a size that is not known": r"paddle\.diff\(",
    "gradient of cumulative_trapezoid, of the first row for all": r"paddle\.cumulative_trapezoid\(",
    "softmax with soft labels of logits that are 64 apart": r"npair_loss\(|soft_label=True",
    "prod of a zero": r"paddle\.prod\(",
    "amax and amin of one value": r"paddle\.(amax|amin)\(",
}

RELATIVE, OF_GRADIENTS = 1e-4, 2e-3


def run_text(module, text):
    """(found, gradients) of a program's source; a str: the error that it ended with."""
    names = {}
    try:
        with (
            warnings.catch_warnings(),
            module.utils.unique_name.guard(),
            module.static.scope_guard(module.static.Scope()),
        ):
            warnings.simplefilter("ignore")
            exec(compile(text, "program", "exec"), names)
    except Exception as error:  # noqa: BLE001, whatever it ends with is its result
        return f"{type(error).__name__}: {str(error).strip()}"
    return (
        {name: np.asarray(array) for name, array in names["found"].items()},
        {name: np.asarray(array) for name, array in names["gradients"].items()},
    )


class Other:
    """Another interpreter, which runs what this one sends it."""

    def __init__(self, python):
        self.python, self.process = python, None

    def run(self, text):
        """run_text() over there; where the process dies, that is what it ended with."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [self.python, __file__, "--serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        try:
            self.process.stdin.write(base64.b64encode(text.encode()) + b"\n")
            self.process.stdin.flush()
            for line in self.process.stdout:
                if line.startswith(b"RESULT "):
                    return pickle.loads(base64.b64decode(line[7:]))
        except BrokenPipeError:
            pass
        return f"died with {self.process.wait()}"


def serve():
    """What Other starts."""
    import paddle

    paddle.enable_static()
    for line in sys.stdin.buffer:
        # What hangs over there ends there, and counts as refused.
        signal.alarm(5)
        result = run_text(paddle, base64.b64decode(line).decode())
        sys.stdout.buffer.write(b"RESULT " + base64.b64encode(pickle.dumps(result)) + b"\n")
        sys.stdout.buffer.flush()


def distance(found, wanted, tolerance, sure=None):
    """None, or how an array differs from another."""
    if found.shape != wanted.shape:
        return f"has the shape {list(found.shape)}, not {list(wanted.shape)}"
    if wanted.dtype.kind != "f":
        return None if np.array_equal(found, wanted) else "differs"
    with np.errstate(all="ignore"):
        far = np.abs(found - wanted) > tolerance * (1.0 + np.max(np.abs(wanted), initial=0.0))
        far |= np.isnan(found) != np.isnan(wanted)
    return "differs" if np.any(far if sure is None else far & sure) else None


def numpys(program, factors=None):
    """What the reference says: (values, gradients, where they are sure)."""
    gradients, sure = program.gradients(factors)
    known = program.after_the_step(program.evaluate(factors=factors), gradients)
    return {name: known[name] for name in program.fetched}, gradients, sure


def compare(program, result, expected):
    """Sentences: what differs between a result and ({name: array}, {parameter: array}, {parameter: sure})."""
    if isinstance(result, str):
        return [result]
    values, gradients, sure = expected
    wrong = []
    types = program.types
    for name, wanted in values.items():
        found = result[0][name]
        if found.dtype.name != types[name] and wanted.dtype.kind != "f":
            wrong.append(f"{name} is {found.dtype.name}, not {types[name]}")
        elif text := distance(found, wanted, RELATIVE):
            wrong.append(f"{name} {text}")
    for name, wanted in gradients.items():
        found = result[1].get(name, np.zeros(wanted.shape, "float32"))
        if text := distance(found, wanted, OF_GRADIENTS, sure.get(name)):
            wrong.append(f"the gradient of {name} {text}")
    return wrong


def stands(program):
    """Whether the reference itself does not change where its numbers change by an error of float32."""
    one = numpys(program)
    others = [numpys(program, program.errors(most)) for most in (4e-7, -4e-7)]
    return all(
        distance(two[part][name], one[part][name], tolerance / 4, one[2].get(name) if part else None) is None
        for two in others
        for part, tolerance in ((0, RELATIVE), (1, OF_GRADIENTS))
        for name in one[part]
    )


def drawn(seed, ties=False):
    """The program of a seed, which has at least one step."""
    for attempt in itertools.count():
        program = programs.Maker(f"{seed}.{attempt}", ties).make(table_values.OPERATIONS, 1 + seed % 5)
        if program.steps:
            return program


class Comparison:
    """Programs of one module against numpy, or another interpreter."""

    def __init__(self, module, other=None):
        self.module, self.other = module, other
        self.counts = collections.Counter()

    def difference(self, program):
        """(sentences, result, expected): no sentence where nothing differs."""
        text = program.source()
        result = run_text(self.module, text)
        if self.other is None:
            expected = numpys(program)
            return compare(program, result, expected), result, expected
        theirs = self.other.run(text)
        if isinstance(theirs, str):
            self.counts["refused over there"] += 1
            return [], result, None
        missing = {leaf.name: np.zeros(leaf.shape, "float32") for leaf in program.parameters()}
        expected = (theirs[0], {**missing, **theirs[1]}, {})
        return compare(program, result, expected), result, expected

    def judge(self, seed):
        """judged() of the program of a seed."""
        return self.judged(drawn(seed, ties=self.other is not None), f"seed {seed}")

    def judged(self, program, title="a program"):
        """None for a program that is right, else (sentences, script)."""
        self.counts["programs"] += 1
        self.counts["steps"] += len(program.steps)
        wrong, result, _ = self.difference(program)
        if not wrong:
            return None
        if self.other is not None and not isinstance(result, str):
            known = [name for name, pattern in DEPARTURES.items() if re.search(pattern, program.source())]
            if known and not compare(program, result, numpys(program)):
                self.counts["wrong in Paddle alone: " + known[0]] += 1
                return None
        if wrong == [result] and re.search(r"no fixed size|\[(\d+, )*-1[],]", result):
            self.counts["refused for a size that is not known"] += 1
            return None
        if wrong == [result] and any(leaf.is_open for leaf in program.leaves):
            closed = programs.closed(program)
            if not self.difference(closed)[0]:
                self.counts["refused for a size that is not known"] += 1
                return None
            program = closed
        elif wrong != [result] and not stands(program):
            self.counts["undecided"] += 1
            return None
        self.counts["wrong"] += 1
        kind = re.sub(r"\W|\d", "", wrong[0].partition(":")[0])[:12]

        def fails(candidate):
            again, came, _ = self.difference(candidate)
            same = bool(again) and re.sub(r"\W|\d", "", again[0].partition(":")[0])[:12] == kind
            return same and (isinstance(came, str) or stands(candidate))

        program = programs.shrink(program, fails)
        wrong, result, expected = self.difference(program)
        found = {} if isinstance(result, str) else {**result[0], **_named(result[1])}
        wanted = {} if expected is None else {**expected[0], **_named(expected[1])}
        return wrong, f"# {title}: {'; '.join(wrong)[:400]!r}\n" + program.script(found, wanted)


def _named(gradients):
    return {f"the gradient of {name}": array for name, array in gradients.items()}


def names_of(text):
    """The names of Paddle that a text uses: {"paddle.add"}."""
    return {
        name.replace("F.", "paddle.nn.functional.")
        for name in re.findall(r"\b(?:paddle\.(?:static\.nn\.)?|F\.)\w+", text)
    }


def load():
    """fleetrun, as `paddle`."""
    module = importlib.import_module("fleetrun")
    sys.modules.setdefault("paddle", module)
    module.enable_static()
    return module


def main(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--against", metavar="PYTHON")
    parser.add_argument("--keep", metavar="FOLDER", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.serve:
        return serve()
    if options.list:
        used = names_of(" ".join(table_values.UNARY))
        for seed in range(options.seed, options.seed + options.count):
            used |= names_of("\n".join(step.text for step in drawn(seed).steps))
        print("\n".join(sorted(used)))
        return 0
    comparison = Comparison(load(), Other(options.against) if options.against else None)
    for seed in range(options.seed, options.seed + options.count):
        found = comparison.judge(seed)
        if found is None:
            continue
        if options.keep is None:
            print(found[1], flush=True)
        else:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"{seed}.py").write_text(found[1], encoding="utf-8")
            print(seed, "; ".join(found[0])[:200].replace("\n", " "), flush=True)
    with contextlib.suppress(BrokenPipeError):
        print(", ".join(f"{count} {name}" for name, count in comparison.counts.items()), flush=True)
    return 1 if comparison.counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Random samples, good and bad, through Paddle's data generators and through fleetrun's: the text that they
write, the exceptions that they raise and the slots that they note must be equal.

  tests/oracles/generator_parity.py --paddle=VENV [--cases=2000] [--seed=1]
                                    [--record=tests/golden/data_generator/cases.json]

VENV is a virtual environment with Paddle; this interpreter must have fleetrun. Prints `equal` with the counts
and exits 0, prints the first difference and exits 1, or exits 77 without Paddle. --record writes some of the
cases with what Paddle made of them, for tests/e2e/python/test_data_generator.py.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys

RUNNER = pathlib.Path(__file__).resolve().parents[1] / "support" / "generator_cases.py"
INTS = ("0", "7", "-1", "99999999", "100000000", "2**31", "2**63 - 1", "2**63", "2**64 - 1", "-2**63",
        "10**30", "True", "False")
FLOATS = ("0.0", "-0.0", "0.1", "1/3", "1e-05", "0.0001", "1e16", "123456789012345.6", "1e300", "5e-324",
          "nan", "inf", "-inf", "3.0")
STRANGE = ("'x'", "b'x'", "(1,)", "[]", "1j")


def value(draw, kind):
    if kind == "strange" and draw.random() < 0.3:
        return draw.choice(STRANGE)
    if kind == "string":
        return draw.choice(("'a'", "'08'", "''", "'é'", "'1.5'", "'\\ud800'", "'two words'"))
    if kind in ("float", "strange") and draw.random() < 0.7:
        return (draw.choice(FLOATS) if draw.random() < 0.5
                else repr(draw.uniform(-2, 2) * 10 ** draw.randint(-8, 20)))
    return (draw.choice(INTS) if draw.random() < 0.5
            else repr(draw.randint(-10 ** draw.randint(0, 19), 10 ** draw.randint(0, 19))))


def slot(draw, name, kind, bad):
    values = ", ".join(value(draw, kind) for _ in range(draw.choice((1, 1, 1, 2, 5))))
    if draw.random() < bad:
        return draw.choice((f"({name!r}, ({values},))", f"({name!r}, [])", f"(b'x', [{values}])",
                            f"('other', [{values}])",
                            f"({name!r},)", f"({name!r}, [{values}], 1)", "None", f"({name!r}, None)"))
    return draw.choice((f"({name!r}, [{values}])", f"[{name!r}, [{values}]]"))


def sample(draw, kinds, bad):
    names = [f"s{i}" for i in range(len(kinds))]
    slots = [slot(draw, name, kind, bad) for name, kind in zip(names, kinds)]
    form = draw.random()
    if form < 0.1:
        return "None"
    if form < 0.1 + bad:
        return draw.choice(("{'s0': [1]}", "'text'", "7", "[" + ", ".join(slots + slots[:1]) + "]", "[]"))
    if form < 0.5:
        return "[" + ", ".join(slots) + "]"
    if form < 0.7:
        return "(" + ", ".join(slots) + ",)"
    columns = ["[" + ", ".join(value(draw, kind) for _ in range(draw.choice((1, 3)))) + "]" for kind in kinds]
    return f"zip({names!r}, [" + ", ".join(columns) + "])"


def case(draw):
    base = draw.choice(("MultiSlotDataGenerator", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator"))
    bad = draw.choice((0, 0, 0.01))
    usual = (("string",) if base == "MultiSlotStringDataGenerator" else ("int", "int", "float") +
             ("strange",) * (bad > 0))
    kinds = [draw.choice(usual) for _ in range(draw.randint(1, 5))]
    lines = [[sample(draw, kinds, bad) for _ in range(draw.choice((0, 1, 1, 1, 3)))]
             for _ in range(draw.choice((1, 3, 40)))]
    return {"base": base, "samples": "[" + ", ".join("[" + ", ".join(line) + "]" for line in lines) + "]",
            "batch": draw.choice((None, 1, 2, 7)), "pads": draw.random() < 0.2}


def outcomes(python, module, cases):
    done = subprocess.run([python, str(RUNNER), module], input=json.dumps(cases), stdout=subprocess.PIPE,
                          text=True, check=True,
                          env={**os.environ, "FLEETRUN_READER_PROCESSES": "1"})
    return json.loads(done.stdout[done.stdout.index("["):])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paddle", required=True)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record")
    given = parser.parse_args()
    paddle = os.path.join(given.paddle, "bin", "python")
    if not os.path.exists(paddle):
        print(f"generator_parity: no {paddle}")
        return 77
    draw = random.Random(given.seed)
    cases = [case(draw) for _ in range(given.cases)]
    expected = outcomes(paddle, "paddle.distributed.fleet", cases)
    found = outcomes(sys.executable, "fleetrun.distributed.fleet", cases)
    for one, theirs, ours in zip(cases, expected, found):
        if theirs != ours:
            print(f"different\n  case:     {one}\n  Paddle:   {theirs}\n  fleetrun: {ours}")
            return 1
    if given.record:
        short = [[one, theirs] for one, theirs in zip(cases, expected) if len(one["samples"]) < 800]
        refused = [entry for entry in short if entry[1]["error"]]
        short = refused[:40] + [entry for entry in short if not entry[1]["error"]][:40]
        text = ",\n".join(json.dumps(entry) for entry in short)
        pathlib.Path(given.record).write_text(f"[\n{text}\n]\n", encoding="utf-8")
    errors = sum(1 for theirs in expected if theirs["error"])
    print(f"equal: {len(cases)} cases, {errors} of them refused alike (seed {given.seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())

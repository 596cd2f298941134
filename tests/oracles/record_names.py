#!/usr/bin/env python3
"""Records what real Paddle 2.6.2 gives for the cases of tests/oracles/names:
tests/golden/engine/SUBJECT.json.

usage: python tests/oracles/record_names.py [SUBJECT…]    (an interpreter with paddlepaddle==2.6.2,
                                                          such as the one that
                                                         scripts/bench setup-peers makes)

Ends with 1 when a case ended with an error in real Paddle: such a case says nothing.
tests/e2e/python/test_paddle_names.py compares.
"""

import json
import pathlib
import sys

import name_cases
import paddle

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "engine"


def write(subject, found):
    """One case to a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(case, separators=(',', ':'))}" for name, case in found.items()]
    (GOLDEN / (subject + ".json")).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main(words):
    if paddle.__version__ != "2.6.2":
        raise SystemExit(f"record_names: error: Paddle {paddle.__version__} is not the recorded 2.6.2")
    paddle.enable_static()
    failed = 0
    for subject in words or name_cases.subjects():
        found = name_cases.run_subject(paddle, subject)
        for name, case in found.items():
            if "error" in case:
                failed += 1
                print(f"{subject}.{name}: {case['error']}", file=sys.stderr)
        if not any("error" in case for case in found.values()):
            write(subject, found)
        print(f"{subject}: {len(found)} cases", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

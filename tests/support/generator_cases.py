"""Runs data generators over given samples and says what came out: text, exception and slots. A case is a dict

    base     "MultiSlotDataGenerator" or "MultiSlotStringDataGenerator"
    samples  Python source of a list: what generate_sample() gives for line 0, 1,
             … of standard input, each a list
    batch    set_batch()'s argument, or None
    pads     whether generate_batch() is overridden (reverses each batch)

and an outcome {"text", "error": [type, message] or None, "slots": [[name, type], …] or None}.

  python generator_cases.py MODULE < cases.json > outcomes.json     MODULE: paddle.distributed.fleet, say
"""

import importlib
import io
import json
import sys

NAMES = {"nan": float("nan"), "inf": float("inf"),
         "__builtins__": {"zip": zip, "bytes": bytes, "True": True, "False": False}}


def outcome(fleet, case):
    class Reader(getattr(fleet, case["base"])):
        def __init__(self):
            super().__init__()
            self.lines = iter(eval(case["samples"], NAMES))

        def generate_sample(self, line):
            samples = next(self.lines)
            return lambda: iter(samples)

    if case["pads"]:
        Reader.generate_batch = lambda self, samples: lambda: reversed(samples)
    reader = Reader()
    if case["batch"]:
        reader.set_batch(case["batch"])
    before = sys.stdin, sys.stdout
    sys.stdin, sys.stdout = io.StringIO("line\n" * len(eval(case["samples"], NAMES))), io.StringIO()
    error = None
    try:
        reader.run_from_stdin()
    except Exception as failure:
        error = [type(failure).__name__, str(failure)]
    finally:
        text = sys.stdout.getvalue()
        sys.stdin, sys.stdout = before
    return {"text": text, "error": error, "slots": reader._proto_info
            and [list(slot) for slot in reader._proto_info]}


def main():
    fleet = importlib.import_module(sys.argv[1])
    json.dump([outcome(fleet, case) for case in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()

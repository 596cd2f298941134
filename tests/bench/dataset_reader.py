"""A MultiSlotDataGenerator over raw Criteo text, as users write them:
what it costs, and what of that is the user's own.

One script for both sides of `scripts/bench dataset`;
as a pipe command it is `python dataset_reader.py < raw`.

usage: dataset_reader.py [--measure RAW REPORT.json]
"""

import json
import os
import sys
import time

import paddle.distributed.fleet as fleet

NAMES = ("dense_input", *(f"C{i}" for i in range(1, 27)), "label")
LOW = (0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
RANGE = (5775, 257678, 65535, 969, 23159456, 431037, 56311, 6047, 29019, 46, 231, 4008, 7393)


class Reader(fleet.MultiSlotDataGenerator):
    def generate_sample(self, line):
        def samples():
            fields = line.rstrip("\n").split("\t")
            dense = [0.0 if field == "" else (float(field) - low) / width
                     for field, low, width in zip(fields[1:14], LOW, RANGE)]
            words = [[int(word, 16) % 1000001] if word else [0] for word in fields[14:40]]
            yield zip(NAMES, [dense, *words, [int(fields[0])]])

        return samples


def whole(raw):
    """Seconds of run_from_stdin() from a file to nowhere."""
    reader, out = Reader(), sys.stdout
    with open(raw) as sys.stdin, open(os.devnull, "w") as sys.stdout:
        start = time.monotonic()
        reader.run_from_stdin()
        sys.stdout.flush()
        seconds = time.monotonic() - start
    sys.stdout = out
    return seconds


def users_own(raw):
    """Seconds of generate_sample() alone, over the same lines."""
    reader = Reader()
    with open(raw) as lines:
        start = time.monotonic()
        for line in lines:
            for _ in reader.generate_sample(line)():
                pass
        return time.monotonic() - start


def main():
    if len(sys.argv) == 1:
        Reader().run_from_stdin()
        return
    _, _, raw, report = sys.argv
    rounds = [(whole(raw), users_own(raw)) for _ in range(3)]
    with open(report, "w") as file:
        json.dump({"whole": min(one for one, _ in rounds), "users": min(other for _, other in rounds)}, file)


if __name__ == "__main__":
    main()

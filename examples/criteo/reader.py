"""From a line of the Criteo click log to the slots of a wide & deep model: `python reader.py < day_0.tsv`
prints the MultiSlot format. What criteo.json says to `fleetrun data read --schema=criteo.json`, which prints
the same bytes, said in Python, for those who want to do more with a line than a schema can.

A line is a label, 13 counts and 26 categories, parted by tabs (or, `python reader.py ,`, by commas after a
line of names); what is missing is empty.
"""
import sys
import zlib

import fleetrun.distributed.fleet as fleet

COUNTS = range(1, 14)
CATEGORIES = range(14, 40)
LEAST = (0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
MOST = (20, 600, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50)
IDS = 1000001
FEATURE_NAMES = ("counts", *(f"C{i}" for i in range(1, 27)), "label")


class CriteoReader(fleet.MultiSlotDataGenerator):
    def __init__(self, delimiter="\t"):
        super().__init__()
        self.delimiter = delimiter

    def line_process(self, line):
        """[[13 numbers], [id], …, [id], [label]] of one line."""
        fields = line.rstrip("\r\n").split(self.delimiter)
        dense = []
        for place, least, most in zip(COUNTS, LEAST, MOST):
            dense.append((float(fields[place]) - least) / (most - least) if fields[place] else 0.0)
        # hash() would do, were it not another one in each process.
        ids = [[zlib.crc32(f"C{place - 13}={fields[place]}".encode()) % IDS] for place in CATEGORIES]
        return [dense, *ids, [int(fields[0])]]

    def generate_sample(self, line):
        def samples():
            yield zip(FEATURE_NAMES, self.line_process(line))

        return samples


if __name__ == "__main__":
    reader = CriteoReader(*sys.argv[1:])
    if reader.delimiter != "\t":
        next(sys.stdin)  # the names of the columns
    reader.run_from_stdin()

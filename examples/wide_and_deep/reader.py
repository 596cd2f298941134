"""From a flight to the slots of model.py: `python reader.py < data/train/part-00.txt` prints the MultiSlot
format.

Each feature is `name=value` (or two of them crossed, `carrier*dest=UA*IAH`), hashed to a 32-bit number: the
tables grow a row for each number that is seen, so no vocabulary has to be made or shipped.
"""
import zlib

import fleetrun.distributed.fleet as fleet

COLUMNS = ("weekday", "hour", "minute", "arrival_hour", "carrier", "flight", "tail", "origin", "dest",
           "miles")
CROSSES = (("carrier", "dest"), ("origin", "dest"), ("origin", "hour"), ("weekday", "hour"),
           ("carrier", "hour"),
           ("dest", "hour"))
# What a line of prepare_data.py holds after the label, by place.
PLACE = {name: place for place, name in enumerate(COLUMNS, 1)}
CATEGORIES = tuple(f"C{i}" for i in range(1, len(COLUMNS) + len(CROSSES) + 1))
FEATURE_NAMES = ("dense_input", *CATEGORIES, "label")
# Slots by name: the prefix of what is hashed, and the two columns of a cross.
_SINGLE = tuple(f"{name}=" for name in COLUMNS)
_CROSSED = tuple((f"{a}*{b}=", PLACE[a], PLACE[b]) for a, b in CROSSES)


class WideDeepDatasetReader(fleet.MultiSlotDataGenerator):
    def line_process(self, line):
        """[[dense values], [id], [id], ..., [label]] of one line."""
        fields = line.rstrip("\n").split("\t")
        hour, minute, arrival, miles = int(fields[2]), int(fields[3]), int(fields[4]), int(fields[10])
        dense = [(hour * 60 + minute) / 1440, arrival / 24, miles / 5000]
        # A flight number is the carrier's own; distances are told apart by steps of 250 miles.
        fields[6] = fields[5] + fields[6]
        fields[10] = str(miles // 250)
        crc32 = zlib.crc32
        ids = [[crc32((name + value).encode())] for name, value in zip(_SINGLE, fields[1:])]
        ids += [[crc32(f"{name}{fields[a]}*{fields[b]}".encode())] for name, a, b in _CROSSED]
        return [dense, *ids, [int(fields[0])]]

    def generate_sample(self, line):
        def wd_reader():
            yield zip(FEATURE_NAMES, self.line_process(line))

        return wd_reader


if __name__ == "__main__":
    WideDeepDatasetReader().run_from_stdin()

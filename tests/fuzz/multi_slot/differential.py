"""Many texts, good and broken, to the parser and to tests/support/strict_multi_slot.py: the same rows, the
same bad lines, those behind them included.

usage: differential.py PARSE_MANY [--inputs N] [--seed S] [--corpus FOLDER] [--seconds LIMIT]

A text is made by a seed: good lines, then bytes and words of it changed. Cut anywhere, it must read the same.
With --corpus the files of a folder that a fuzzer has filled are read too. Exits 1 at the first difference.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from strict_multi_slot import parse  # noqa: E402

PREFIXES = [(), (), (), ("id",), ("id", "content"), ("log_key",), ("id", "content", "log_key")]
SCHEMAS = [
    [("f", "float", 2, 1), ("s", "id", 0, 1), ("g", "float", 0, 1), ("y", "id", 1, 1)],
    [("s", "id", 0, 1)],
    [("y", "id", 1, 1)],
    [("g", "float", 0, 1)],
    [("f", "float", 1, 1), ("y", "id", 3, 1)],
    [("a", "id", 0, 1), ("b", "id", 0, 1), ("c", "id", 0, 1), ("d", "id", 0, 1)],
    [("a", "id", 0, 0), ("b", "float", 2, 1), ("c", "float", 2, 0), ("d", "id", 0, 1), ("e", "id", 0, 0)],
]
WORDS = """0 1 2 3 -1 -0 +1 007 2147483647 2147483648 4294967297 9223372036854775807 9223372036854775808 -9223372036854775808
    -9223372036854775809 18446744073709551615 18446744073709551616 99999999999999999999 nan NaN -nan nan() nan(1_z) nan(-) nan( inf -INF
    infinity infinit 0x 0x10 0X.8p-1 0x1p 0x1p99999 0x1.fffffefp127 1e400 -1e400 1e-400 1e 1e+ .e1 . 5. .5 1.5.5 1_0 1,5 ++1 3.5e38
    3.40282356e38 3.4028235677973366e38 1.401298464e-45 7.006492321624085e-46 16777217 0.1000000000000000055511151231257827
    12345678 123456789 1234567.5 1e0000000000000000000000000000000000000001 0.00000000000000000000000000000000000000000000001
    """.split()
PIECE_BYTES = b"\n\n\n\r\t\v\f 0123456789-+.eExXpPnaif_,()\0\xff\xa0"


def good_word(pick, kind):
    if pick.random() < 0.02:
        return pick.choice(WORDS)
    if kind == "id":
        return str(pick.getrandbits(pick.randrange(1, 65)) - (pick.random() < 0.1) * 2**60)
    return pick.choice([lambda: f"{pick.uniform(-100, 100):.{pick.randrange(20)}f}",
                        lambda: repr(pick.random()),
                        lambda: f"{pick.uniform(-1, 1):e}", lambda: repr(10 ** pick.uniform(-50, 38)),
                        lambda: float.hex(pick.uniform(-9, 9)),
                        lambda: str(pick.getrandbits(pick.randrange(1, 90)))])()


def good_line(pick, slots, prefixes):
    words = []
    for kind in prefixes:
        words += ["1", f"{pick.getrandbits(128):032x}" if kind == "log_key" else pick.choice(WORDS)]
    for _, kind, width, _ in slots:
        count = width or pick.choice([1, 1, 1, 2, 3, 9])
        words += [str(count), *(good_word(pick, kind) for _ in range(count))]
    return "".join(word + pick.choice([" ", " ", " ", "\t", "  "])
                   for word in words).encode() + pick.choice([b"\n", b"\n", b"\r\n"])


def change(pick, text):
    """One mistake, of the kinds that hands, programs and disks make."""
    at = pick.randrange(len(text) + 1)
    end = min(len(text), at + pick.choice([1, 1, 2, 5, 30]))
    kind = pick.randrange(6)
    if kind == 0:
        return text[:at] + bytes([pick.choice(PIECE_BYTES)]) + text[end:]
    if kind == 1:
        return text[:at] + text[end:]
    if kind == 2:
        return text[:end] + text[at:]
    if kind == 3:
        return text[:at] + b" " + pick.choice(WORDS).encode() + b" " + text[at:]
    if kind == 4:
        words = text.split(b" ")
        words[pick.randrange(len(words))] = pick.choice(WORDS).encode()
        return b" ".join(words)
    return text[:at] + bytes([pick.randrange(256)]) + text[at:]


def made(pick):
    slots, prefixes = pick.choice(SCHEMAS), pick.choice(PREFIXES)
    text = b"".join(good_line(pick, slots, prefixes) for _ in range(pick.randrange(0, 25)))
    for _ in range(pick.choice([0, 0, 1, 1, 2, 5])):
        text = change(pick, text)
    return (slots, prefixes, pick.choice([1 << 24, 1 << 24, 1 << 24, 60]),
            text[:-1] if pick.random() < 0.2 else text)


def shown(row):
    return " ".join(" ".join(map(str, [len(values), *values])) for values in row)


def wanted(slots, prefixes, limit, text):
    """What parse_many prints."""
    rows, faults = parse(text, slots, prefixes, limit)
    if faults and faults[0][0] == 1 and text.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        faults[0] = (1, "")  # packed: no fault of a slot
    return [*map(shown, rows), *(f"bad {line} {slot}" for line, slot in faults), "end"]


def compare(program, inputs, pick):
    """Rows and faults on which both agree; exits at a difference."""
    asked = bytearray()
    for slots, prefixes, limit, text in inputs:
        words = " ".join(":".join(map(str, slot)) for slot in slots)
        piece = pick.choice([1, 2, 7, 64, len(text) + 1])
        asked += f"{words}\n{len(text)} {piece} {limit} {' '.join(prefixes)}\n".encode() + text
    answers = iter(subprocess.run([program], input=bytes(asked), stdout=subprocess.PIPE,
                                  check=True).stdout.decode().splitlines())
    rows = faults = 0
    for slots, prefixes, limit, text in inputs:
        want = wanted(slots, prefixes, limit, text)
        got = [next(answers)]
        while got[-1] != "end":
            got.append(next(answers))
        if got != want:
            sys.exit(f"{slots} {prefixes} {limit}\n{text!r}\nis read as\n" + "\n".join(got) +
                     "\nand by the strict parser as\n" + "\n".join(want))
        bad = sum(line.startswith("bad ") for line in want)
        rows, faults = rows + len(want) - bad - 1, faults + bad
    return rows, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="parse_many")
    parser.add_argument("--inputs", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=20130101)
    parser.add_argument("--corpus", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, help="go on with new seeds for so long")
    arguments = parser.parse_args()
    pick = random.Random(arguments.seed)
    rows = faults = texts = 0
    start = time.monotonic()
    if arguments.corpus:
        files = [(slots, (), 1 << 24, path.read_bytes()[3:]) for path in sorted(arguments.corpus.iterdir())
                 for slots in SCHEMAS]
        rows, faults = compare(arguments.program, files, pick)
        texts = len(files)
    while texts < arguments.inputs or arguments.seconds and time.monotonic() - start < arguments.seconds:
        more = compare(arguments.program, [made(pick) for _ in range(1000)], pick)
        rows, faults, texts = rows + more[0], faults + more[1], texts + 1000
    print(f"{texts} texts: {rows} rows and {faults} faults agree, seed {arguments.seed}")
    if min(rows, faults) < 1000:
        sys.exit("too few of one kind: the texts prove nothing")


if __name__ == "__main__":
    main()

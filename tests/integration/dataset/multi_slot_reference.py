"""The MultiSlot format a second time, slow and plain, and a comparison with parse_dump over random text.

usage: multi_slot_reference.py PARSE_DUMP [ROUNDS]      exits 1 at the first text that the two read differently
"""

import ctypes
import random
import re
import struct
import subprocess
import sys

SLOTS = [("f", "float", 2), ("s", "id", 0), ("g", "float", 0), ("y", "id", 1)]
SEPARATORS = b" \t\v\f\r"
DECIMAL = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
HEXADECIMAL = re.compile(rb"[+-]?0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(p[+-]?\d+)?", re.IGNORECASE)
WORD = re.compile(rb"[+-]?(nan(\([0-9a-z_]*\))?|inf|infinity)", re.IGNORECASE)

strtof = ctypes.CDLL(None).strtof
strtof.restype, strtof.argtypes = ctypes.c_float, [ctypes.c_char_p, ctypes.c_void_p]


class Fault(Exception):
    """The slot's name, or an empty string."""


def id_text(token, slot):
    if not re.fullmatch(rb"[+-]?\d+", token) or not -2**63 <= int(token) < 2**64:
        raise Fault(slot)
    value = int(token)
    return str(value - 2**64 if value >= 2**63 else value)


def float_text(token, slot):
    if not any(form.fullmatch(token) for form in (DECIMAL, HEXADECIMAL, WORD)):
        raise Fault(slot)
    value = strtof(token, None)
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")) and not WORD.fullmatch(token):
        raise Fault(slot)
    return f"{struct.unpack('I', struct.pack('f', value))[0]:x}"


def row_text(line):
    tokens = re.split(rb"[ \t\v\f\r]+", line.strip(SEPARATORS))
    if tokens == [b""]:
        raise Fault("")
    words = []
    for name, kind, width in SLOTS:
        if not tokens or not re.fullmatch(rb"\d+", tokens[0]) or not 0 < int(tokens[0]) < 2**64:
            raise Fault(name)
        count = int(tokens.pop(0))
        if width and count != width:
            raise Fault(name)
        words.append(str(count))
        for _ in range(count):
            if not tokens:
                raise Fault(name)
            words.append((float_text if kind == "float" else id_text)(tokens.pop(0), name))
    if tokens:
        raise Fault("")
    return " ".join(words)


def reference(text):
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(row_text(line))
        except Fault as fault:
            return [*rows, f"fault {number} {fault}"]
    return [*rows, "end"]


def random_text(generator):
    """Mostly good lines; now and then a byte or a token is changed, and so mostly bad."""
    pick, digits = generator.choice, lambda: str(generator.getrandbits(generator.randrange(1, 65)))

    def one_float():
        if generator.random() < 0.005:
            return pick(["1e400", "0xp", "1_0", "3.5e38", "."])
        return pick([lambda: f"{generator.uniform(-100, 100):.{generator.randrange(20)}f}", lambda: repr(generator.random()),
                     lambda: f"{generator.uniform(-1, 1):e}", lambda: repr(10 ** generator.uniform(-50, 38)), digits,
                     lambda: pick(["nan", "-inf", "Infinity", ".5", "5.", "+1", "-0", "1e-50", "0x10", "-0x1.8p-3", "0xp"])])()

    def one_id():
        return pick([digits, digits, lambda: "-" + str(generator.getrandbits(63)),
                     lambda: pick(["+7", "007", "18446744073709551616", "7.5", "-9223372036854775809"])
                     if generator.random() < 0.01 else "1"])()

    lines = []
    for _ in range(generator.randrange(1, 30)):
        words = []
        for _, kind, width in SLOTS:
            count = width or generator.randrange(1, 5)
            words += [str(count), *((one_float if kind == "float" else one_id)() for _ in range(count))]
        line = "".join(word + pick([" ", " ", " ", "\t", "  "]) for word in words)
        lines.append(bytearray(line.encode()) + pick([b"\n", b"\n", b"\r\n"]))
    text = bytearray(b"".join(lines))
    for _ in range(generator.choice([0, 0, 1, 2])):
        text[generator.randrange(len(text))] = pick(b"\n\r\t 0123456789-+.eEx\0\xff,")
    return bytes(text[:-1] if generator.random() < 0.3 else text)


def main():
    command = [sys.argv[1], *(":".join(map(str, slot)) for slot in SLOTS)]
    generator = random.Random(20130101)
    good = bad = 0
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 300):
        text = random_text(generator)
        want = reference(text)
        got = subprocess.run(command, input=text, capture_output=True, check=True).stdout.decode().splitlines()
        if got != want:
            sys.exit(f"{text!r}\nis read as\n" + "\n".join(got) + "\nand by the reference as\n" + "\n".join(want))
        good, bad = good + len(want) - 1, bad + (want[-1] != "end")
    print(f"{good} rows and {bad} faults agree")
    if min(good, bad) < 100:
        sys.exit("too few of one kind: the random text proves nothing")


if __name__ == "__main__":
    main()

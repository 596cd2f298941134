"""The MultiSlot text format a second time, slow and plain: what the fast parser is held against.

A slot is (name, "float" | "id", width of a dense slot or 0, used); prefixes are of "id", "content",
"log_key". A row is a list of lists: its prefixes if there are any,
then each used slot's ints or float32 bits.
"""
import ctypes
import re
import struct

FLOAT = (
    re.compile(rb"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
               rb"|0[xX]([\da-fA-F]+\.?[\da-fA-F]*|\.[\da-fA-F]+)([pP][+-]?\d+)?)"))
WORD = re.compile(rb"[+-]?(nan(\(\w*\))?|inf|infinity)", re.IGNORECASE)
strtof = ctypes.CDLL(None).strtof
strtof.restype, strtof.argtypes = ctypes.c_float, [ctypes.c_char_p, ctypes.c_void_p]

class Fault(Exception):
    """The name of the slot at fault; empty for a fault of the whole line or of a prefix."""

def check(good, slot=""):
    if not good:
        raise Fault(slot)

def id_of(token, slot):
    check(re.fullmatch(rb"[+-]?0*\d{1,20}", token) and -2**63 <= int(token) < 2**64, slot)
    return (int(token) + 2**63) % 2**64 - 2**63

def float_bits(token, slot):
    value = strtof(token, None)
    check(WORD.fullmatch(token) or FLOAT.fullmatch(token) and abs(value) != float("inf"), slot)
    return struct.unpack("I", struct.pack("f", value))[0] if value == value else "nan"

READ = {"float": float_bits, "id": id_of}

def check_unused(token, slot):
    check(b"\0" not in token, slot)

def prefix_of(kind, token):
    check_unused(token, "")
    if kind != "log_key":
        return {kind: f"{kind} {token.hex()}"}
    check(re.fullmatch(rb"[\da-fA-F]{32}", token[:32]))
    fields = (str(int(token[a:b], 16)) for a, b in ((16, 32), (11, 14), (14, 16)))
    return {"id": f"id {token.hex()}", kind: " ".join([kind, *fields])}

def row_of(line, slots, prefixes):
    tokens, head = re.findall(rb"[^ \t\v\f\r]+", line), {}
    check(len(tokens) >= max(1, 2 * len(prefixes)))
    for kind in prefixes:
        check(tokens.pop(0) == b"1")
        head |= prefix_of(kind, tokens.pop(0))
    row = [list(head.values())] if prefixes else []
    for name, kind, width, used in slots:
        check(tokens and re.fullmatch(rb"0*\d{1,20}", tokens[0]) and 0 < int(tokens[0]) < 2**64, name)
        count, values, tokens = int(tokens[0]), tokens[1:int(tokens[0]) + 1], tokens[int(tokens[0]) + 1:]
        check(not used or width in (0, count), name)
        found = [(READ[kind] if used else check_unused)(token, name) for token in values]
        row += [found] if used else []
        check(len(values) == count, name)
    check(not tokens)
    return row

def parse(text, slots, prefixes=(), limit=1 << 24):
    """([rows], [(line number, slot) of each bad line])."""
    rows, faults = [], []
    for number, line in enumerate(text.split(b"\n")[:None if text and not text.endswith(b"\n") else -1], 1):
        try:
            check(len(line) <= limit)
            rows.append(row_of(line, slots, prefixes))
        except Fault as fault:
            faults.append((number, str(fault)))
    return rows, faults

"""The cases of dataset_parity.py: a text each, and what is expected of both sides.

expect: "same"       both feed the same values
        "refused"    ours is an error that contains `ours`; Paddle does `paddle` instead,
                     one of "aborts", "feeds"
        "differs"    both feed; ours feeds what `twin`, the same case for a QueueDataset or another text, does
"""

import random
import struct

F, S, G, Y = ("f", "float32", [2], 0), ("s", "int64", [1], 1), ("g", "float32", [1],
                                                                1), ("y", "int64", [1], 0)
SLOTS = [F, S, Y]


def case(name, text, expect="same", slots=SLOTS, kinds=("queue", "memory"), batch=2, ours="", paddle="",
         why="", **more):
    """`text` is one file's bytes or a list of them, by file; each kind of dataset makes a case of its own."""
    texts = [text] if isinstance(text, (bytes, str)) else text
    texts = [one.encode() if isinstance(one, str) else one for one in texts]
    return [{"name": f"{name} ({kind})", "kind": kind, "texts": texts, "slots": slots, "batch": batch,
             "expect": expect,
             "ours": ours, "paddle": paddle, "why": why, "command": "cat", "threads": 1, "suffix": "",
             "init": {}, "our_init": {},
             "settings": [], "after": [], "unordered": False, "preload": False,
             "shuffled": [], "after_passes": [], **more} for kind in kinds]


def rules():
    """Where Paddle is right."""
    four = [(name, "int64", [1], 1) for name in ("a", "b", "c", "d")]
    shorts = "1 1 2 3 3 4 5 5 5 5 1 1\n1 2 2 3 4 4 6 6 6 6 1 2\n1 3 2 3 5 4 7 7 7 7 1 3\n"
    good = "2 0.5 1 3 11 12 13 1 1\n2 2 3 1 14 1 0\n2 4 5 2 15 16 1 1\n"
    yield from case("Paddle's own sample", shorts, slots=four)
    yield from case("two files, one after the other", [shorts, shorts.replace("3", "8")], slots=four,
                    kinds=("queue",))
    yield from case("batches of 1", good, batch=1)
    yield from case("a short last batch", good, batch=2)
    yield from case("a batch larger than the file", good, batch=100)
    yield from case("tabs, double blanks, blanks at both ends",
                    "2\t0.5 \t1  3 11\t12 13 1 1\n  2 2 3 1 14 1 0  \n\t2 4 5 2 15 16 1 1\t\n")
    yield from case("vertical tabs and form feeds", "2\v0.5\f1 1\v11 1 1\n")
    yield from case("CRLF", good.replace("\n", "\r\n"))
    yield from case("no final line feed", good[:-1])
    yield from case("an empty file among others", [good, "", good], kinds=("queue",))
    yield from case("only an empty file", "")
    yield from case("negative ids", "2 1 1 2 -3 -1 1 -7\n2 1 1 1 -9223372036854775808 1 0\n")
    yield from case("ids of 64 bits",
                    "2 1 1 3 18446744073709551615 9223372036854775808 9223372036854775807 1 1\n")
    yield from case("ids with zeros in front, a plus", "2 1 1 3 007 +7 00000000000000000000000012 1 1\n")
    yield from case("words for floats", "".join(f"2 1 {word} 1 5 1 1\n" for word in
                                                ("nan", "NaN", "inf", "-inf", "Infinity", "+INF")))
    yield from case("forms of floats", "".join(f"2 1 {word} 1 5 1 1\n" for word in
                                               (".5", "5.", "+1", "-0", "1e5", "1E-5", "-1.5e+3", "1e-46",
                                                "0.1", "16777217",
                                                "3.4028234e38", "1.17549435e-38", "1e-45",
                                                "0.30000001192092896",
                                                "1.000000059604644775390625", "1.0000001788139343",
                                                "123456789012345678901")))
    yield from case("hexadecimal floats", "".join(f"2 1 {word} 1 5 1 1\n" for word in
                                                  ("0x10", "0X1.8p1", "-0x.8", "0x1p-149", "0x1.fffffep127")))
    yield from case("floats in a sparse slot", "2 1 1 2 11 12 3 0.5 -2 1e5 1 1\n2 1 1 1 13 1 nan 1 0\n",
                    slots=[F, S, G, Y])
    yield from case("zeros in a dense slot", "2 0 0 1 5 1 0\n2 -0 1e-20 1 5 1 0\n")
    yield from case("a dense slot of several axes", "6 1 2 3 4 5 6 1 5\n6 6 5 4 3 2 1 1 6\n",
                    slots=[("f", "float32", [2, 3], 0), ("y", "int64", [1], 0)])
    yield from case("long lists", "".join(f"2 1 2 {n} {' '.join(map(str, range(1, n + 1)))} 1 1\n"
                                          for n in (1, 1000, 3, 70000)))
    yield from case("a pipeline of commands", good, command="sed 's/11/99/' | head -n 2", kinds=("queue",))
    yield from case("a .gz file", good, suffix=".gz")
    yield from case("zeros in a sparse slot", "2 1 1 2 0 4 1 1\n2 1 1 1 0 1 1\n2 1 1 4 5 0 5 5 1 1\n",
                    kinds=("queue",))
    yield from shared_and_in_memory(good)
    yield from random_files()


def shared_and_in_memory(good):
    """Several threads, and what InMemoryDataset alone has."""
    numbers = ["".join(f"2 {n} 0.5 1 {100 * n + i} 1 1\n" for i in range(1, 40)) for n in range(1, 5)]
    yield from case("two files", numbers[:2], kinds=("memory",))
    yield from case("four files, two threads", numbers, threads=2, unordered=True, batch=7)
    yield from case("local_shuffle", numbers, kinds=("memory",), after=["local_shuffle"], unordered=True,
                    batch=7)
    yield from case("preloaded", good, kinds=("memory",), preload=True)
    ids = "1 id1 " + good.replace("\n2 ", "\n1 id2 2 ")
    contents = "1 id1 1 a_b " + good.replace("\n2 ", "\n1 id2 1 c 2 ")
    for name, text, settings in (("lines with an id", ids, {"parse_ins_id": True}),
                                 ("lines with an id and a content", contents,
                                  {"parse_ins_id": True, "parse_content": True})):
        yield from case(name, text, kinds=("memory",), settings=[["_init_distributed_settings", settings]])
    yield from merges()
    yield from case("four files, one thread", numbers, batch=7)
    yield from case("slots_shuffle", numbers, kinds=("memory",),
                    settings=[["_set_fea_eval", {"record_candidate_size": 50}]],
                    after=[["slots_shuffle", ["s"]]], shuffled=["s"], twin="four files, one thread (memory)",
                    unordered=True, batch=7)
    yield from case("zeros in a sparse slot, dropped as Paddle does",
                    "2 1 1 2 0 4 1 1 1 1\n2 1 1 1 0 2 0 1e-7 1 1\n2 1 1 4 5 0 5 5 3 nan -1e-6 1 1 1\n",
                    kinds=("memory",),
                    slots=[F, S, G, Y], our_init={"drop_zeros": True})


def merges():
    """Lines of one id, each with the values of some slots and zeros in the others."""
    slots = [F, S, G, Y]
    lines = {"merged": "1 a 2 0 0 1 5 1 0 1 1\n1 a 2 1 2 1 0 1 0.5 1 0\n",
             "not of two": "1 b 2 1 1 1 6 1 1 1 1\n",
             "in conflict": "1 c 2 1 1 1 7 1 0 1 1\n1 c 2 0 0 1 8 1 2 1 0\n",
             "several values": "1 d 2 3 0 1 0 3 1 2 3 1 0\n1 d 2 0 4 4 9 9 8 7 1 0 1 0\n",
             "three": "1 e 2 0 0 1 1 1 0 1 0\n1 e 2 0 0 1 0 1 1 1 0\n1 e 2 9 0 1 0 1 0 1 4\n"}
    for size in (2, 3):
        yield from case(f"merge_by_lineid, groups of {size}", "".join(lines.values()), kinds=("memory",),
                        slots=slots,
                        settings=[["_init_distributed_settings", {"parse_ins_id": True, "merge_size": size}]],
                        after_passes=["merge_by_lineid"],
                        our_init={"drop_zeros": True}, unordered=True)


def random_files():
    """Valid text by a seed: slots of all kinds, counts, forms of numbers.
    No zeros where Paddle would drop them."""
    for seed in range(12):
        pick = random.Random(seed)
        slots = [(f"v{i}", pick.choice(["float32", "int64"]), [1], 1) if pick.random() < 0.6 else
                 (f"v{i}", pick.choice(["float32", "int64"]), [pick.randrange(1, 6)], 0)
                 for i in range(pick.randrange(1, 9))]
        lines = []
        for _ in range(pick.randrange(1, 300)):
            words = []
            for _, dtype, (width,), lod in slots:
                count = pick.choice([1, 1, 2, 3, 40]) if lod else width
                words += [str(count),
                          *((random_float if dtype == "float32" else random_id)(pick) for _ in range(count))]
            lines.append(pick.choice(["", "", " "]) + pick.choice([" ", " ", "\t", "  "]).join(words)
                         + pick.choice(["\n", "\n", " \n", "\r\n"]))
        yield from case(f"random file {seed}", "".join(lines), slots=slots,
                        batch=pick.choice([1, 3, 32, 1000]))


def random_id(pick):
    value = pick.choice([pick.randrange(1, 100), pick.randrange(1, 10**9), pick.getrandbits(64) | 1])
    return (pick.choice(["", "", "", "0"]) + str(value) if pick.random() < 0.9
            else f"-{pick.getrandbits(63) | 1}")


def random_float(pick):
    bits = struct.unpack("f", struct.pack("I", pick.randrange(0x3A000000, 0x7F000000)))[0]
    value = pick.choice([pick.uniform(0.001, 1), pick.uniform(1, 1e6), bits]) * pick.choice([1, 1, 1, -1])
    return pick.choice([repr, "{:.6f}".format, "{:e}".format, "{:.9g}".format, "{:.17g}".format,
                        float.hex])(value)


def differences():
    """Where ours differs on purpose: (cases), each with the reason."""
    good = "2 1 1 1 5 1 1\n"
    for what, bad, ours in (
            ("a count of 0 in a sparse slot", "2 1 1 0 1 1", "1:7: slot 's'"),
            ("a count of 0 in a dense slot", "0 1 5 1 1", "1:1: slot 'f'"),
            ("a missing last slot", "2 1 1 1 5", "slot 'y': the line ends before it"),
            ("a count that takes the next slot's values", "2 1 1 3 5 1 1",
             "slot 'y': the line ends before it"),
            ("a count that is not a number", "2 1 1 x 5 1 1", "slot 's': 'x' is not a count"),
            ("an id that is not a number", "2 1 1 1 five 1 1", "slot 's': 'five' is not a whole number"),
            ("a float in an id slot", "2 1 1 1 7.9 1 1", "slot 's': '7.9' is not a whole number"),
            ("a blank line", "", "the line is empty"),
            ("a line of blanks", "  ", "the line is empty"),
            ("a NUL", "2 1 1 1 5\x00 1 1", r"slot 's': '5\x00' is not a whole number")):
        yield from case(what, bad + "\n" + good, "refused", ours=ours, paddle="aborts",
                        why="abort() says neither file nor line, and no caller can go on")
    yield from case("a count larger than the values", "2 1 1 1 5 2 1\n" + good, "refused", ours="slot 'y'",
                    paddle="feeds",
                    why="Paddle invents the values that are missing")
    yield from case("a file", good, kinds=("queue",))
    yield from case("a negative count", "2 1 1 -1 5 1 1\n" + good, "refused",
                    ours="slot 's': '-1' is not a count",
                    paddle="any", why="invented values, or abort()")
    yield from case("tokens after the last slot", "2 1 1 1 5 1 1 9 9\n" + good, "refused",
                    ours="1:15: the line goes on",
                    paddle="feeds", why="a line with more than its slots was made for other slots")
    yield from case("a dense count that is not the declared one", "3 1 1 1 1 5 1 1\n1 1 1 5 1 1\n", "refused",
                    ours="slot 'f': 3 values where its width is 2", paddle="feeds",
                    why="Paddle cuts the batch anew, and moves values to other examples")
    yield from case("2^64", "2 1 1 1 18446744073709551616 1 1\n", "refused", ours="does not fit 64 bits",
                    paddle="feeds",
                    why="Paddle makes -1 of it, which is another id")
    yield from case("a float beyond float32", "2 1 1e400 1 5 1 1\n", "refused",
                    ours="is too large for float32",
                    paddle="feeds", why="Paddle makes inf of it, and a model that has seen one inf is lost")
    yield from case("bytes after a number", "2 1 1,5 1 5 1 1\n", "refused", ours="'1,5' is not a number",
                    paddle="any",
                    why="half a number is another number")
    yield from case("a command that fails after all its output", good, "refused", command="cat; exit 3",
                    ours="exited with 3",
                    paddle="feeds", why="the data may be incomplete, and nobody would know")
    yield from case("a command that is not found", good, "refused", command="no-such-command",
                    ours="exited with 127",
                    paddle="nothing", why="Paddle trains on nothing, with exit status 0")
    yield from case("a .gz file that is none", good, "refused", suffix=".gz", raw=True,
                    ours="not in gzip format",
                    paddle="nothing", why="as above")
    yield from case("a missing file", good, "refused", missing=True, ours="No such file", paddle="nothing",
                    why="as above")
    yield from case("loaded, released and loaded again", good, "differs", kinds=("memory",),
                    after=["release_memory", "load_into_memory"], twin="a file (queue)",
                    why="Paddle ends by SIGSEGV")
    yield from case("zeros in a sparse slot", "2 1 1 2 0 4 1 1\n2 1 1 1 0 1 1\n2 1 1 4 5 0 5 5 1 1\n",
                    "differs", kinds=("memory",), twin="zeros in a sparse slot (queue)",
                    why="both datasets feed what the file says; Paddle's InMemoryDataset drops zeros, and "
                        "pads where nothing is left")

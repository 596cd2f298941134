#!/usr/bin/env python3
"""The same files through Paddle's datasets and through ours: every batch, value by value, bit by bit.

  tests/oracles/dataset_parity.py [--paddle26 VENV] [--paddle33 VENV] [--only TEXT]

Where Paddle is right ours must feed the same bytes and offsets; where ours differs on purpose, both sides are
checked to do what the list that is printed at the end says. The peers are those of `scripts/bench
setup-peers`; one that is not there is left out, and the exit status is 77 when none is. Run it with the
interpreter that has fleetrun.
"""

import argparse
import gzip
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "bench")]

import dataset_cases  # noqa: E402
import peers  # noqa: E402


def write_files(cases, folder):
    """Writes each case's files; the cases as dataset_feeds.py reads them."""
    for number, case in enumerate(cases):
        case["files"] = []
        for part, text in enumerate(case.pop("texts")):
            path = folder / f"{number}-{part}.txt{case['suffix']}"
            if not case.get("missing"):
                path.write_bytes(gzip.compress(text) if case["suffix"] == ".gz" and not case.get("raw")
                                 else text)
            case["files"].append(str(path))
    return cases


def feed(python, side, cases, folder):
    """{name: result} of all cases under one interpreter."""
    asked, answer = folder / "cases.json", folder / "results.json"
    asked.write_text(json.dumps(cases))
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")
             or side != "paddle"}
    clean.update(GLOG_minloglevel="2", OMP_NUM_THREADS="1")
    subprocess.run([python, str(HERE / "dataset_feeds.py"), side, str(asked), str(answer)], check=True,
                   env=clean,
                   cwd=folder, stdout=subprocess.DEVNULL)  # where Paddle may leave its *_train_desc.prototxt
    return json.loads(answer.read_text())


# What Paddle's Python packages do not offer; tests/unit/dataset has ours.
NOT_COMPARED = """unused slots: use_var makes slots that are used, all of them
log keys (parse_logkey), and what is merged by them: of Paddle's BoxPSDataset alone, whose library the packages are without
global_shuffle of several trainers: of Paddle's server libraries, which the packages are without"""


def rows(case, result, leave_out=()):
    """Each example as a tuple of its slots' bytes, for results whose order is not the file's."""
    found = []
    for batch in result["batches"]:
        sizes = [8 if dtype == "int64" else 4 for _, dtype, _, _ in case["slots"]]
        columns = []
        for (name, _, shape, _), size, (text, offsets) in zip(case["slots"], sizes, batch):
            if name in leave_out:
                continue
            data, width = bytes.fromhex(text), 1
            for axis in shape:
                width *= axis
            offsets = offsets or range(0, len(data) // size + 1, width)
            columns.append([data[size * a:size * b] for a, b in zip(offsets, offsets[1:])])
        found += zip(*columns)
    return sorted(found)


def shuffled_values(case, result):
    """The lists of values that the shuffled slots have, each once."""
    others = [name for name, _, _, _ in case["slots"] if name not in case["shuffled"]]
    return set(rows(case, result, others))


def agree(case, ours, theirs, all_ours):
    """Why the two results are not the same; empty when they are."""
    for side, result in (("fleetrun", ours), ("Paddle", theirs)):
        if result["ended"] != "ok":
            return f"{side}: {result['ended']}: {result['text'].strip()[-300:]}"
    if case["shuffled"]:
        if rows(case, ours, case["shuffled"]) != rows(case, theirs, case["shuffled"]):
            return "other values in slots that are not shuffled"
        known = shuffled_values(case, all_ours[case["twin"]])
        for side, result in (("fleetrun", ours), ("Paddle", theirs)):
            if not shuffled_values(case, result) <= known:
                return f"{side}: values that no example has in a shuffled slot"
            if rows(case, result) == rows(case, all_ours[case["twin"]]):
                return f"{side}: nothing is shuffled"
        return ""
    if case["unordered"]:
        return "" if rows(case, ours) == rows(case, theirs) else "other examples"
    if len(ours["batches"]) != len(theirs["batches"]):
        return f"{len(ours['batches'])} batches, Paddle {len(theirs['batches'])}"
    for number, (one, other) in enumerate(zip(ours["batches"], theirs["batches"]), 1):
        for (name, dtype, _, _), (mine, my_offsets), (its, its_offsets) in zip(case["slots"], one, other):
            if values(mine, dtype) != values(its, dtype) or my_offsets != its_offsets:
                return (
                    f"batch {number}, slot {name}: {values(mine, dtype)[:8]} "
                        f"{my_offsets and my_offsets[:8]}, Paddle {values(its, dtype)[:8]} "
                        f"{its_offsets and its_offsets[:8]}")
    return ""


def values(text, dtype):
    """Integers, and floats as their bits: any nan is the same as another."""
    data = bytes.fromhex(text)
    if dtype == "int64":
        return struct.unpack(f"{len(data) // 8}q", data)
    bits = struct.unpack(f"{len(data) // 4}I", data)
    return tuple("nan" if one & 0x7FFFFFFF > 0x7F800000 else f"{one:08x}" for one in bits)


def what_paddle_does(result):
    if result["ended"] == "signal 6":
        return "aborts"
    if result["ended"] != "ok":
        return result["ended"]
    return "feeds" if any(batch[0][0] for batch in result["batches"]) else "nothing"


def differ(case, ours, theirs, all_ours):
    """Why a difference on purpose is not as it should be; empty when it is."""
    does = what_paddle_does(theirs)
    if case["expect"] == "refused":
        if ours["ended"] != "error" or case["ours"] not in ours["text"]:
            return (f"fleetrun: {ours['ended']}, not an error with {case['ours']!r}: "
                    f"{ours.get('text', ours.get('batches'))}")
        return ("" if case["paddle"] in ("any", does)
                else f"Paddle {does} where it should have been: {case['paddle']}")
    if ours["ended"] != "ok" or ours["batches"] != all_ours[case["twin"]]["batches"]:
        return f"fleetrun feeds other values than for {case['twin']}: {ours}"
    return "Paddle feeds the same" if not agree(case, ours, theirs, all_ours) else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("paddle26", "paddle33"):
        parser.add_argument(f"--{name}", default=peers.folder_of(name),
                            help=f"virtual environment ({peers.folder_of(name)})")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    arguments = parser.parse_args()
    sides = [(name, os.path.join(getattr(arguments, name), "bin", "python"))
             for name in ("paddle26", "paddle33")]
    sides = [(name, python) for name, python in sides if os.path.exists(python)]
    if not sides:
        print("no Paddle: scripts/bench setup-peers")
        return 77
    faults, on_purpose = [], {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        cases = [*dataset_cases.rules(), *dataset_cases.differences()]
        chosen = [one for one in cases if arguments.only in one["name"]]
        twins = {one.get("twin") for one in chosen}
        cases = [one for one in cases if one in chosen or one["name"] in twins]
        cases = write_files(cases, folder)
        ours = feed(sys.executable, "fleetrun", cases, folder)
        for side, python in sides:
            theirs = feed(python, "paddle", cases, folder)
            same = 0
            for case in cases:
                one, other = ours[case["name"]], theirs[case["name"]]
                if case["expect"] == "same":
                    wrong = agree(case, one, other, ours)
                    same += not wrong
                else:
                    wrong = differ(case, one, other, ours)
                    on_purpose.setdefault(case["name"], (case, {}))[1][side] = what_paddle_does(other)
                if wrong:
                    faults.append(f"{side}: {case['name']}: {wrong}")
            batches = sum(len(theirs[case["name"]].get("batches", ())) for case in cases
                          if case["expect"] == "same")
            print(f"{side}: {same} cases the same, {batches} batches", flush=True)
    print("\nOn purpose otherwise:")
    for name, (case, paddle) in on_purpose.items():
        print(f"  {name}: fleetrun {'refuses it' if case['expect'] == 'refused' else 'feeds it all'}; "
              + ", ".join(f"{side} {does}" for side, does in paddle.items()) + f": {case['why']}")
    print("\nNot compared:", *NOT_COMPARED.splitlines(), sep="\n  ")
    print(f"\n{len(faults)} faults", *faults, sep="\n  ")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs Paddle's own tests of fleet, parameter servers and datasets under the package, unmodified, and
compares with paddle_tests.txt, which has every case that passes under Paddle 2.6.2: it runs, or says why not.

usage: python tests/oracles/paddle_tests.py FOLDER [FILE…]   (an interpreter with pytest and fleetrun)

FOLDER is the folder `test` of a copy of Paddle's sources, release 2.6; tests write beside themselves. FILE…:
some of the files of the list only. Prints each case that is not as the list says, and how many run. Ends with
1 when a case that is to run does not, or one that is listed with a reason does.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

LIST = pathlib.Path(__file__).with_suffix(".txt")
LIMIT = 150  # seconds a file


def read_list(text):
    """({word: reason}, {file: {case: "runs" or a word}})."""
    reasons, files, section, word = {}, {}, "", ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line[1:-1]
        elif section == "reasons" and line:
            word, _, reason = line.partition(": ")
            reasons[word] = reason
        elif section and line:
            first, colon, rest = line.partition(":")
            word = first.strip() if colon else word
            files.setdefault(section, {}).update(dict.fromkeys((rest if colon else line).split(), word))
    return reasons, files


def passed(folder, name):
    """The cases of a file that pass: {"Class.case"}."""
    import fleetrun

    path = folder / name
    compat = pathlib.Path(fleetrun.__file__).parent / "_compat"
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        environment = {
            **{key: value for key, value in os.environ.items()
               if not key.startswith(("PADDLE_", "TRAINING_"))},
            "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(compat), os.environ.get("PYTHONPATH")])),
        }
        job = subprocess.Popen(
            [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", report.name,
             path.name],
            cwd=path.parent, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT,
            start_new_session=True)
        try:
            job.wait(LIMIT)
        except subprocess.TimeoutExpired:
            print(f"{name}: it has not ended in {LIMIT} s")
        finally:
            try:
                os.killpg(job.pid, signal.SIGKILL)  # servers that the test has left
            except ProcessLookupError:
                pass
            job.wait()
        text = pathlib.Path(report.name).read_bytes()
    cases = ElementTree.fromstring(text).iter("testcase") if text else ()
    return {
        f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
        for case in cases
        if not any(case.find(kind) is not None for kind in ("failure", "error", "skipped"))
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=pathlib.Path, help="the folder `test` of a copy of Paddle's sources")
    parser.add_argument("files", nargs="*", help="these files of the list only")
    options = parser.parse_args()
    reasons, files = read_list(LIST.read_text(encoding="utf-8"))
    unknown = sorted({word for cases in files.values() for word in cases.values()} - {*reasons, "runs"})
    if unknown:
        raise SystemExit(f"paddle_tests: error: {LIST.name} has no reason {unknown[0]}")
    wrong, ran, listed = 0, 0, 0
    for name in options.files or files:
        found = passed(options.folder.resolve(), name)
        for case, word in files[name].items():
            listed += 1
            ran += case in found
            if (case in found) != (word == "runs"):
                wrong += 1
                told = "it does not run" if word == "runs" else f"it runs, and is listed as {word}"
                print(f"{name} {case}: {told}")
    print(f"{ran} of {listed} cases run")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

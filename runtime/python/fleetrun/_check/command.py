"""fleetrun check: its arguments, and what it prints."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys

from fleetrun._check.build import build
from fleetrun._check.script import Result, check

USAGE = """\
usage: fleetrun check [--json] SCRIPT… [-- ARGUMENTS OF THE SCRIPT]
       fleetrun check --build [--json] SCRIPT [-- ARGUMENTS OF THE SCRIPT]

Reads each script and the modules of yours that it imports, and lists what would end its run with
`fleetrun --compat=paddle` (or with `import fleetrun`): names that are not here, arguments and settings that
are refused, shapes that do not fit, modules that this Python has not. Each with its file and line, why, and
what to write instead, in the order in which a run comes to it. Nothing of the scripts is executed, and no
process is started.

What a run comes to only where a branch is taken that cannot be foreseen is listed after the findings, as
possible; it does not count. Nor do arguments, variables and files that a run needs and this check has not.

  --json         as one line of JSON, for programs
  --build        execute the script, too, up to its first batch: without data, and without starting a process
                 or opening a port; finds what depends on values that reading does not tell
  --python=PATH  before SCRIPT: the interpreter; default as for a launch
  --compat=paddle
                 before SCRIPT: what this command assumes; nothing changes
  -h, --help     show this

Exit status: 0 nothing is found, 1 there are findings, 2 the command line is wrong.
"""


def parse(words: list[str]) -> tuple[set[str], list[str], list[str]]:
    """(flags, scripts, arguments of the script). Throws: ValueError with what is wrong."""
    flags: set[str] = set()
    scripts: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return flags, scripts, rest
        if word in ("-h", "--help", "--json", "--build"):
            flags.add("--help" if word == "-h" else word)
        elif scripts and (word.startswith("-") or not word.endswith(".py")):
            return flags, scripts, [word, *rest]  # as behind a launch: the script's own
        elif word.split("=")[0] == "--compat":
            value = word.partition("=")[2] if "=" in word or not rest else rest.pop(0)
            if value != "paddle":
                raise ValueError(f"--compat is {value!r}: there is no such package, use --compat=paddle")
        elif word.startswith("-"):
            raise ValueError(f"there is no flag {word}")
        else:
            scripts.append(word)
    if not scripts and "--help" not in flags:
        raise ValueError("there is no script")
    if "--build" in flags and len(scripts) > 1:
        raise ValueError("--build executes one script")
    missing = [each for each in scripts if not os.path.isfile(each)]
    if missing:
        raise ValueError(f"there is no file {missing[0]}")
    return flags, scripts, []


def main(words: list[str]) -> int:
    """Runs the command; returns its exit status."""
    try:
        flags, scripts, arguments = parse(words)
    except ValueError as error:
        sys.stderr.write(f"fleetrun: error: check: {error}\n  hint: fleetrun check --help\n")
        return 2
    if "--help" in flags:
        sys.stdout.write(USAGE)
        return 0
    sys.path.append(os.path.join(os.path.dirname(os.path.dirname(__file__)), "_compat"))
    folders = [os.path.dirname(os.path.abspath(each)) for each in scripts]
    # What is really made may print and warn.
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        results = [check(each, arguments, folders) for each in scripts]
    if "--build" in flags:
        results[0].add(build(scripts[0], arguments))
    try:
        if "--json" in flags:
            print(json.dumps({"scripts": [_as_json(each) for each in results]}))
        else:
            for each in results:
                _print(each)
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"fleetrun: error: standard output cannot be written: {error.strerror}\n")
        os._exit(125)  # what is still to be written would be tried once more
    return int(any(each.findings for each in results))


def _as_json(result: Result) -> dict[str, object]:
    return {
        "script": result.script,
        "findings": [each.as_json() for each in result.findings],
        "possible": [each.as_json() for each in result.possible],
        "wants": [each.as_json() for each in result.wants],
        "seconds": round(result.seconds, 3),
    }


def _print(result: Result) -> None:
    for finding in result.findings:
        print(finding.as_text())
    for others, what in (
        (result.possible, "possible, where a branch is taken that cannot be foreseen:"),
        (result.wants, "needed by a run, and not found by this check:"),
    ):
        if others:
            print(f"{result.script}: {what}")
        for finding in others:
            print("  " + finding.as_text().replace("\n", "\n  "))
    count = len(result.findings)
    what = "nothing is found" if not count else f"{count} finding{'s' if count > 1 else ''}"
    print(f"{result.script}: {what}")

#!/usr/bin/env python3
"""usage: tests/campaigns/check_scripts.py --from FOLDER [--from FOLDER …] [--count N] [--seed N] [--only N]
                                       [--first N] [--seconds N] [--fleetrun PATH]

Draws scripts that use paddle from folders, one a public repository, asks `fleetrun check` what would end
each, and runs it with `fleetrun --compat=paddle` in a copy of its folder. A run that fails must have been
foretold: the first finding is the line where it fails, or one that calls it. A run that ends well, or goes on
after --seconds, has no finding. What a run lacks here (files, data sets, arguments, variables) is no finding,
and is only counted.

HOME/.cache/paddle/dataset may hold data sets, and PYTHONPATH modules that scripts import.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess

import campaign

LARGEST = 4 << 20  # of the files that are copied
USES = re.compile(r"^\s*(?:import|from) paddle\b", re.MULTILINE)
DOES = re.compile(r"__main__|^\w[\w.]*\.(?:run|minimize|train_from_dataset)\(", re.MULTILINE)
LACKS = re.compile(
    r"FileNotFoundError|is not there|No such file|sys\.argv|os\.environ|EOFError|ConnectionError|URLError"
    r"|expected str, bytes or os.PathLike object, not NoneType"
    r"|args\b[^\n]*\n(?:[\s^~]*\n)?\w+: [^\n]*NoneType"
)
FRAMES = re.compile(r'File "([^"]+)", line (\d+)')
counts = collections.Counter()
drawn = []


def draw(options, folder):
    """A script of each repository in turn, the same for a seed."""
    found = []
    for each in options.folders:
        root = pathlib.Path(each).resolve()
        scripts = sorted(path for path in root.rglob("*.py") if path.is_file() and is_program(path))
        campaign.random.Random(f"{options.seed}-{root.name}").shuffle(scripts)
        found += [(number, root, path) for number, path in enumerate(scripts)]
    drawn.extend(sorted(found, key=lambda each: (each[0], str(each[2])))[: options.count])


def is_program(path):
    text = path.read_text(errors="replace")
    return bool(USES.search(text) and DOES.search(text))


def run(turn):
    if turn.number >= len(drawn):
        return None
    _, root, script = drawn[turn.number]
    shutil.copytree(root, turn.directory / "copy", symlinks=True, ignore=lambda folder, names: [
        name for name in names if is_large(os.path.join(folder, name)) or name == ".git"])
    own = str(turn.directory / "copy")
    here = os.path.join(own, script.relative_to(root))
    said = subprocess.run([turn.options.fleetrun, "check", "--json", here], cwd=os.path.dirname(here),
                          env=turn.environment(), capture_output=True, text=True, timeout=120)
    told = json.loads(said.stdout)["scripts"][0]
    failure = failure_of(turn, here, own)
    wrong, kind = judged(told, failure, os.path.dirname(here))
    counts[kind] += 1
    return wrong and f"{root.name}/{script.relative_to(root)}: {wrong}"


def is_large(path):
    return os.path.isfile(path) and os.path.getsize(path) > LARGEST


def failure_of(turn, script, own):
    """(the lines of the script's own files that were at work, what was said) of a run that failed with a
    traceback; "" where it failed without one; None where it did not fail."""
    command = [turn.options.fleetrun, "--compat=paddle", "--log_dir", str(turn.directory / "log"),
               f"--timeout={turn.options.seconds}s", script]
    status = subprocess.run(command, cwd=os.path.dirname(script), env=turn.environment(),
                            stdin=subprocess.DEVNULL, capture_output=True).returncode
    if status in (0, 124):
        return None
    log = turn.directory / "log" / "workerlog.0"
    text = log.read_text(errors="replace") if log.exists() else ""
    text = text[text.rfind("Traceback (most recent call last):") :] if "Traceback" in text else syntax(text)
    frames = [(os.path.realpath(file), int(line)) for file, line in FRAMES.findall(text)]
    return [each for each in frames if each[0].startswith(os.path.realpath(own))], text if frames else ""


def syntax(text):
    """Of a script that could not be read: where its error is said without a traceback."""
    return text[text.find('  File "') :] if "SyntaxError" in text or "IndentationError" in text else ""


def judged(told, failure, folder):
    """(what was wrong with the check, or None; what is counted)."""
    first = next(iter(told["findings"]), None)
    where = first and (os.path.realpath(os.path.join(folder, first["file"])), first["line"])
    said = first and f"{first['file']}:{first['line']} {first['text']}"
    if failure is None:
        return (f"runs, and the check finds {said}", "false alarms") if first else (None, "runs")
    lines, text = failure
    if not lines:
        return None, "end without a traceback"
    if where in lines:
        return None, "foretold"
    wants = [(os.path.realpath(os.path.join(folder, each["file"])), each["line"]) for each in told["wants"]]
    if LACKS.search(text) or any(each in lines for each in wants):
        return None, "lack files, arguments or variables"
    last = [line for line in text.splitlines() if line and not line.startswith(" ")]
    ends = f"{os.path.relpath(lines[-1][0], folder)}:{lines[-1][1]} {(last[1:] or last)[0]}"
    return f"ends at {ends}; the check finds {said or 'nothing'}", "not foretold"


def summary():
    judgeable = counts["foretold"] + counts["not foretold"]
    share = 100 * counts["foretold"] / judgeable if judgeable else 100
    return f"{dict(counts)}; the first finding is the first failure in {share:.1f} % of {judgeable}"


def more_options(parser):
    parser.add_argument("--from", dest="folders", action="append", required=True, help="a repository")
    parser.add_argument("--seconds", type=int, default=20, help="after which a script counts as running (20)")


if __name__ == "__main__":
    campaign.main(__doc__, run, count=200, prepare=draw, summary=summary, more_options=more_options)

"""scripts/check-walks: what a walk may be, and how it fails when a file goes,
a call goes, or somebody looks back."""
import json
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check-walks"
WALKS = """# Words.
= a word to a shelf: what is said is kept
cli/main.cc        | reads it
model/plan.cc      | decides
~ model/message.h  | the order
far/shelf.cc       | keeps it
= a call to a sum: from Python
runtime/python/fleetrun/top.py    | the call
runtime/python/fleetrun/low.py    | its half
~ "add_up"         | by name
far/sum.cc         | adds
"""
FILES = {
    "cli/main.cc": '#include "model/plan.h"\n',
    "model/plan.h": '#include "model/message.h"\n',
    "model/plan.cc": '#include "model/plan.h"\n',
    "model/message.h": "",
    "far/shelf.h": '#include "far/deep.h"\n',
    "far/deep.h": '#include "model/message.h"\n',
    "far/shelf.cc": '#include "far/shelf.h"\n',
    "runtime/python/fleetrun/top.py": "from fleetrun import low\n",
    "runtime/python/fleetrun/low.py": "import fleetrun._native\nfleetrun._native.add_up()\n",
    "far/sum.cc": 'module.def("add_up");\n',
}


def check(root, changes=(), *arguments):
    for path, text in {**FILES, "docs/walks": WALKS, **dict(changes)}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            continue
        (root / path).write_text(text)
    run = subprocess.run([SCRIPT, *arguments, root], capture_output=True, text=True, timeout=60)
    return run.returncode, run.stdout


def test_rooms_and_walks_that_hold_are_written_as_data(tmp_path):
    rooms = "# what a row is\n\nfar | | Shelves\ncli | far model | argv in\n"
    assert check(tmp_path, {"docs/rooms": rooms}, f"--write={tmp_path / 'map.json'}") == (0, "")
    found = json.loads((tmp_path / "map.json").read_text())
    assert found["rooms"] == {"far": {"looks_into": [], "what": "Shelves"},
                              "cli": {"looks_into": ["far", "model"], "what": "argv in"}}
    walks = found["walks"]
    assert list(walks) == ["a word to a shelf", "a call to a sum"]
    assert walks["a word to a shelf"] == {"what": "what is said is kept", "files": [
        {"file": "cli/main.cc", "does": "reads it", "from": None, "by": []},
        {"file": "model/plan.cc", "does": "decides", "from": "cli/main.cc", "by": ["model/plan.h"]},
        {"file": "far/shelf.cc", "does": "keeps it", "from": "model/plan.cc", "by": ["model/message.h"]}]}
    assert [file["from"] for file in walks["a call to a sum"]["files"]] == [
        None, "runtime/python/fleetrun/top.py", "runtime/python/fleetrun/low.py"]


@pytest.mark.parametrize("changes, finding", [
    ({"far/sum.cc": None}, "docs/walks:11: far/sum.cc is not there"),
    ({"cli/main.cc": ""}, "docs/walks:4: model/plan.cc is not called by a file before it"),
    ({"far/deep.h": ""}, "docs/walks:6: far/shelf.cc and a file before it do not both know model/message.h"),
    ({"far/sum.cc": 'module.def("add");\n'},
     'docs/walks:11: far/sum.cc and a file before it do not both know "add_up"'),
    ({"far/shelf.cc": '#include "model/plan.h"\n'},
     "docs/walks:6: far/shelf.cc looks back into model/plan.h"),
    ({"runtime/python/fleetrun/low.py": "from fleetrun import top\nadd_up\n"},
     "docs/walks:9: runtime/python/fleetrun/low.py looks back into runtime/python/fleetrun/top.py"),
])
def test_a_walk_that_does_not_hold_is_named_with_its_line(tmp_path, changes, finding):
    status, found = check(tmp_path, changes)
    assert status == 1
    assert finding in found.splitlines()


def test_the_walks_of_this_checkout_hold():
    run = subprocess.run([SCRIPT], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (0, "")

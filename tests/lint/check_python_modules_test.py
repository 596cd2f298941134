"""scripts/check-python-modules finds circles of imports wherever the imports stand, and nothing else."""
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check-python-modules"


def check(root, **files):
    package = root / "runtime/python/fleetrun"
    for name, text in {"__init__": "", **files}.items():
        path = package / (name.replace("__of__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    run = subprocess.run([SCRIPT, root], capture_output=True, text=True, timeout=60)
    return run.returncode, run.stdout


def test_the_package_of_this_checkout_has_no_circle():
    run = subprocess.run([SCRIPT], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout.split(" among")[0]) == (0, "check-python-modules: no circle")


def test_modules_above_each_other_are_accepted(tmp_path):
    status, found = check(tmp_path, a="import fleetrun.b\n", b="from fleetrun import c\n",
                          c="import os, fleetrun.c\n")
    assert (status, found) == (0, "check-python-modules: no circle among 4 modules\n")


@pytest.mark.parametrize("back", [
    "from fleetrun import a\n",
    "import fleetrun.a\n",
    "from fleetrun.a import name\n",
    "from .a import name\n",
    "from . import a\n",
    "def late():\n    from fleetrun import a\n",
    "class Late:\n    async def call(self):\n        import fleetrun.a as other\n",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from fleetrun import a\n",
])
def test_a_circle_is_named_with_the_imports_that_close_it(tmp_path, back):
    status, found = check(tmp_path, a="from fleetrun import b\n", b=back, c="from fleetrun import a, b\n")
    assert status == 1
    line = 1 + back[:back.index("fleetrun" if "fleetrun" in back else ".")].count("\n")
    assert found.splitlines() == [
        "check-python-modules: a circle of 2: fleetrun.a, fleetrun.b",
        "runtime/python/fleetrun/a.py:1: imports fleetrun.b",
        f"runtime/python/fleetrun/b.py:{line}: imports fleetrun.a"]


def test_only_the_lazy_names_of_a_package_do_not_count(tmp_path):
    lazy = "def __getattr__(name):\n    from fleetrun.part import a\n    return a\n"
    assert check(tmp_path / "package", part__of____init__=lazy,
                 part__of__a="from fleetrun import part\n")[0] == 0
    assert check(tmp_path / "module", a=lazy, part__of____init__="",
                 part__of__a="from fleetrun import a\n")[0] == 1

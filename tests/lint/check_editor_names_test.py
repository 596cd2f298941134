"""scripts/check-editor-names names what an editor does not complete.
(scripts/lint python runs it over the package.)"""
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jedi")
SCRIPT = Path(__file__).parents[2] / "scripts" / "check-editor-names"


def test_a_name_that_is_not_there_is_named(tmp_path):
    (tmp_path / "fleetrun").mkdir()
    (tmp_path / "fleetrun" /
     "__init__.py").write_text("def __getattr__(name):\n    return name\n\n\nclass CPUPlace:\n    pass\n")
    run = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, timeout=300)
    assert run.returncode == 1
    assert "paddle.nn is not completed" in run.stdout.splitlines()
    assert "paddle.CPUPlace is not completed" not in run.stdout

"""The README's commands, typed where its reader stands after the quickstart."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
README = (EXAMPLES.parent / "README.md").read_text()


def commands(title):
    """The lines of the first block below `title`, without their comments."""
    block = README.partition(f"\n## {title}\n")[2].partition("```\n")[2].partition("```\n")[0]
    lines = [re.split(r"\s+#\s", line)[0] for line in block.splitlines()]
    assert lines, f"the README has no block below {title}"
    return lines


@pytest.fixture
def folder(example, python):
    """The folder of the quickstart, with the sample in place of a year of flights, and its neighbour."""
    copy = example("wide_and_deep")
    prepared = python(copy, "prepare_data.py", "--sample", "--files", 4)
    assert prepared.returncode == 0, prepared.stderr
    shutil.copytree(EXAMPLES / "mlp", copy.parent / "mlp")
    return copy


def typed(folder, line):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(["bash", "-ec", line], cwd=folder, env=environment, text=True,
                          capture_output=True, timeout=300)


def test_each_command_of_the_launcher_runs(folder):
    first, *rest = commands("The launcher")
    assert first == ". .venv/bin/activate; cd examples/wide_and_deep"
    assert len(rest) == 6
    for line in rest:
        done = typed(folder, line)
        if "--gpus" in line and not Path("/dev/nvidia1").exists():
            assert done.returncode == 125 and "this host has" in done.stderr, line + done.stderr
        else:
            assert done.returncode == 0, line + done.stdout + done.stderr


def test_each_command_that_shows_where_the_time_goes_runs(folder):
    for line in commands("Where the time goes"):
        done = typed(folder, line)
        assert done.returncode == 0, line + done.stdout + done.stderr
    assert (folder / "trace.json").stat().st_size > 1000
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")

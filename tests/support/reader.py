"""A reader of pages: a checkout to stand in, with the installed fleetrun, who types what a page shows."""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys

from fleetrun_job import clean_environment
from torch_python import find_torch_python

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
DEADLINE = 300


class Reader:
    def __init__(self, folder):
        self.folder = folder
        self.sample = folder / "examples" / "wide_and_deep"
        ignored = shutil.ignore_patterns("data", "log", "model", "__pycache__")
        shutil.copytree(EXAMPLES, folder / "examples", ignore=ignored)
        (folder / ".venv").symlink_to(pathlib.Path(sys.prefix))

    def prepare_sample(self):
        """Some days of flights in place of the quickstart's year."""
        subprocess.run([sys.executable, "-B", "prepare_data.py", "--sample", "--files=4"], cwd=self.sample,
                       check=True, capture_output=True, timeout=DEADLINE)

    def torch(self):
        """What makes `fleetrun` start an interpreter that has PyTorch; nothing where there is none."""
        (self.folder / "torch").mkdir(exist_ok=True)
        found = find_torch_python(self.folder / "torch")
        if not found:
            return ""
        variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in found[1].items())
        return f'fleetrun() {{ {variables} command fleetrun --python={shlex.quote(str(found[0]))} "$@"; }}'

    def reads(self, page):
        """Types the page's blocks, and returns what they print."""
        needs_torch = any(block.options.get("needs") == "torch" for block in page.blocks)
        script = page.script(self.torch() if needs_torch else "", gpus=pathlib.Path("/dev/nvidia1").exists())
        path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=DEADLINE, env=clean_environment(PATH=path))
        assert done.returncode == 0, f"{page.path.name}: {done.stdout[-6000:]}"
        return done.stdout

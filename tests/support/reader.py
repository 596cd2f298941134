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
        """What makes `fleetrun` start an interpreter that has PyTorch, that of an environment which is active
        then; nothing where there is none."""
        links, programs = self.folder / "links", self.folder / "torch" / "bin"
        links.mkdir()
        found = find_torch_python(links)
        if not found:
            return ""
        if found[0] == sys.executable:
            return ":"
        programs.mkdir(parents=True)
        for name in ("python", "python3"):
            (programs / name).symlink_to(found[0])
        variables = {**found[1], "VIRTUAL_ENV": str(programs.parent)}
        set_ones = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        return f'fleetrun() {{ {set_ones} command fleetrun "$@"; }}'

    @staticmethod
    def other(package):
        """The same for the environment FLEETRUN_PEERS_OTHERS and a package that it may have."""
        environment = os.environ.get("FLEETRUN_PEERS_OTHERS")
        has = environment and subprocess.run([f"{environment}/bin/python", "-c", f"import {package}"],
                                             capture_output=True, timeout=DEADLINE).returncode == 0
        return f'fleetrun() {{ VIRTUAL_ENV={environment} command fleetrun "$@"; }}' if has else ""

    def reads(self, page):
        """Types the page's blocks, and returns what they print."""
        starts = {package: self.torch() if package == "torch" else self.other(package)
                  for package in page.needs()}
        script = page.script(starts, gpus=pathlib.Path("/dev/nvidia1").exists())
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=DEADLINE, env=self.environment())
        assert done.returncode == 0, f"{page.path.name}: {done.stdout[-6000:]}"
        return done.stdout

    def environment(self):
        """With jobs of its own: lists show no others."""
        path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        return clean_environment(PATH=path, FLEETRUN_RUN_DIR=str(self.folder / "run"))

    def close(self):
        """Ends a job that a page left in the background."""
        fleetrun = pathlib.Path(sys.executable).with_name("fleetrun")
        subprocess.run([fleetrun, "stop", "--now"], env=self.environment(), capture_output=True,
                       timeout=DEADLINE)

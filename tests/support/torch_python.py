"""An interpreter that has torch and the package under test.

That which runs pytest, when it has torch; else Debian's, which is the same one with Debian's packages
(python3-torch and the numpy that it was built for): the package is then reached through a folder
of links that holds nothing else.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys

DEBIAN = "/usr/bin/python3"
DEADLINE = 120


def clean_environment(**more):
    """This process's, without what would change a job."""
    prefixes = ("PADDLE_", "FLEETRUN_", "FLAGS_", "TRAINING_ROLE", "POD_", "TORCH", "MASTER_")
    names = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "PYTHONPATH", "VIRTUAL_ENV", "CUDA_VISIBLE_DEVICES"}
    kept = {name: value for name, value in os.environ.items() if name not in names
            and not name.startswith(prefixes)}
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **more}


def _has_torch(python, environment):
    code = "import sys; assert sys.version_info[:2] == %r; import torch, fleetrun._native" % (
        sys.version_info[:2],)
    try:
        return subprocess.run([python, "-c", code], env=clean_environment(**environment), capture_output=True,
                              timeout=DEADLINE).returncode == 0
    except OSError:
        return False


def package_links(folder, *more):
    """The environment in which another interpreter finds the package under test, and more of this one's,
    through links in the folder."""
    for name in ("fleetrun", *more):
        found = importlib.util.find_spec(name)
        if found is not None:
            (folder / name).symlink_to(pathlib.Path(found.origin).parent)
    return {"PYTHONPATH": str(folder)}


def find_torch_python(folder):
    """(interpreter, environment); None where there is no torch. `folder`: an empty one, for links."""
    if _has_torch(sys.executable, {}):
        return sys.executable, {}
    environment = package_links(folder, "sklearn")  # of scikit-learn only its digits are used
    return (DEBIAN, environment) if _has_torch(DEBIAN, environment) else None

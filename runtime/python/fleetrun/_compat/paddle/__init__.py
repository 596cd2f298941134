"""The name `paddle` for fleetrun: what `fleetrun --compat=paddle` puts first on the scripts' module path.

Every name and every submodule is fleetrun's own object, imported when it is first used. `__version__` is the
version of Paddle whose names and defaults fleetrun follows, because scripts compare it.
"""

import importlib
import importlib.util
import os
import sys

import fleetrun

__version__ = "2.6.2"
__git_commit__ = "fleetrun"

_HOME = os.path.realpath(os.path.join(os.path.dirname(__file__), os.pardir, os.pardir))
if os.path.realpath(os.path.dirname(getattr(fleetrun, "__file__", None) or os.curdir)) != _HOME:
    _other = getattr(fleetrun, "__file__", None) or ", ".join(fleetrun.__path__)
    raise ImportError(
        f"`import fleetrun` finds {_other}, which stands in the way of the package in {_HOME}: "
        "rename it, or take its folder off PYTHONPATH and out of the script's folder"
    )


class _Alias:
    """Gives `paddle.X` the module `fleetrun.X`. Without bases: importlib.abc takes longer than this."""

    def find_spec(self, fullname, path=None, target=None):
        if not fullname.startswith("paddle."):
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__
        sys.modules[name] = importlib.import_module("fleetrun" + name[len("paddle") :])

    def get_code(self, fullname):
        """For `python -m paddle.X`."""
        real = "fleetrun" + fullname[len("paddle") :]
        spec = importlib.util.find_spec(real)
        return spec.loader.get_code(real) if spec else None


paddle = sys.modules[__name__]  # scripts write paddle.paddle.nn, too
sys.meta_path.insert(0, _Alias())
importlib.import_module("fleetrun._older_environment").complete(os.environ)


def __getattr__(name):
    return getattr(fleetrun, name)


def __dir__():
    return dir(fleetrun)

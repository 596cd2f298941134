"""The name `paddle` for fleetrun: what `fleetrun --compat=paddle` puts first on the scripts' module path.

Every name and every submodule is fleetrun's own object, imported when it is first used. `__version__` is the
version of Paddle whose names and defaults fleetrun follows, because scripts compare it.
"""

import importlib
import importlib.abc
import importlib.util
import sys

import fleetrun

__version__ = "2.6.2"


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives `paddle.X` the module `fleetrun.X`."""

    def find_spec(self, fullname, path=None, target=None):
        if not fullname.startswith("paddle."):
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__
        real = "fleetrun" + name[len("paddle") :]
        try:
            sys.modules[name] = importlib.import_module(real)
        except ModuleNotFoundError as error:
            if error.name is None or not real.startswith(error.name):
                raise
            raise ModuleNotFoundError(f"fleetrun has no module {name}", name=name) from None

    def get_code(self, fullname):
        """For `python -m paddle.X`."""
        real = "fleetrun" + fullname[len("paddle") :]
        spec = importlib.util.find_spec(real)
        return spec.loader.get_code(real) if spec else None


sys.meta_path.insert(0, _Alias())


def __getattr__(name):
    return getattr(fleetrun, name)


def __dir__():
    return dir(fleetrun)

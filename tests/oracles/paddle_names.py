#!/usr/bin/env python3
"""Compares runtime/python/fleetrun/paddle_names.txt with the real Paddle 2.6.2: every name of every __all__
has to be decided.

usage: python tests/oracles/paddle_names.py     (an interpreter with paddlepaddle==2.6.2, such as the one that
                                                 scripts/bench setup-peers makes)

Prints each name that is not decided, and each that is decided in a module of 2.6.2 and is not there, how many
there are of each word, and exits 1 when it printed a name.
"""

import collections
import importlib
import importlib.util
import pathlib
import pkgutil
import sys

SOURCE = pathlib.Path(__file__).parents[2] / "runtime/python/fleetrun/_decisions.py"
# What runs something when it is imported, and folders of Paddle's build.
LEFT_OUT = {"libs", "tests", "__main__", "launch", "launch_ps", "cpp_extension"}


def decisions():
    """The module _decisions.py, which needs no fleetrun."""
    spec = importlib.util.spec_from_file_location("decisions", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def public(name, found):
    """Puts {module: __all__} of a module and of those below it into `found`."""
    try:
        module = importlib.import_module(name)
    except BaseException:  # noqa: BLE001, some need GPUs or end the process
        return
    if getattr(module, "__all__", None):
        found[name] = set(module.__all__)
    for one in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if one.name not in LEFT_OUT:
            public(f"{name}.{one.name}", found)


def main():
    import paddle

    if paddle.__version__ != "2.6.2":
        raise SystemExit(f"paddle_names: error: Paddle {paddle.__version__} is not 2.6.2")
    decided, found, wrong = decisions(), {}, 0
    public("paddle", found)
    counts = collections.Counter()
    for module, names in sorted(found.items()):
        for name in sorted(names):
            word = decided.decision(module, name)
            counts[word] += 1
            if word is None:
                wrong += 1
                print(f"{module}.{name} is not decided")
    for module, names in decided.table()[1].items():
        for name, word in names.items():
            if module in found and word == "here" and not hasattr(importlib.import_module(module), name):
                wrong += 1
                print(f"{module}.{name} is decided and not in Paddle 2.6.2")
    print(", ".join(f"{word} {count}" for word, count in counts.most_common()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

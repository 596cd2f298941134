"""`fleetrun check --build`: executes a script up to its first batch.

Programs are built, and not run: Executor.run() of a start-up program does nothing, and where the script asks
for a batch, begins to serve, or would start a process or open a port, the build is over. What ends it before
is a finding.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import runpy
import sys
import traceback
from typing import Any

from fleetrun._check import package
from fleetrun._check.findings import Finding, split_message

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PROCESSES = {
    "subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn",
    "pty.spawn", "socket.bind", "socket.connect", "socket.listen",
}  # fmt: skip
# What computes, reads data or talks to others: (module, class, its methods); the build is over there.
_ENDS = (
    ("fleetrun.static.executor", "Executor", "train_from_dataset infer_from_dataset"),
    ("fleetrun.distributed.fleet._fleet", "Fleet", "run_server stop_worker barrier_worker all_reduce"),
    ("fleetrun.distributed.dataset.in_memory", "InMemoryDataset", "load_into_memory preload_into_memory"),
    ("fleetrun.io.loader", "DataLoader", "__iter__"),
    ("fleetrun.io.generator_loader", "GeneratorLoader", "__iter__ start"),
    ("fleetrun.io.dataset_loader", "DatasetLoader", "__iter__"),
)
# What needs servers or other trainers, and is done without them.
_LEFT_OUT = (("fleetrun.distributed.fleet._fleet", "Fleet", "init_server init_worker"),)


class Over(BaseException):
    """The build is over. No `except Exception` of the script takes it for an error."""


def build(script: str, words: list[str]) -> Finding | None:
    """Executes the script up to its first batch; what ended it before, or None.

    It runs in this process, which has to be one of its own: modules of the script stay loaded.
    """
    package.forget_programs()
    _guard()
    sys.argv = [script, *words]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            runpy.run_path(script, run_name="__main__")
    except (Over, KeyboardInterrupt, FileNotFoundError):
        return None
    except SystemExit as end:
        return None if end.code in (None, 0) else _finding(script, end, f"the script ends with {end.code!r}")
    except BaseException as error:
        return _finding(script, error, f"{type(error).__name__}: {error}")
    finally:
        _State.building = False
    return None


class _State:
    building = False
    has_hook = False


def _guard() -> None:
    """No process, no port, no batch."""
    from importlib import import_module

    _State.building = True
    if not _State.has_hook:
        sys.addaudithook(_forbid)
        _State.has_hook = True
    for rows, act in ((_ENDS, _end), (_LEFT_OUT, _leave_out)):
        for module, cls, names in rows:
            for name in names.split():
                setattr(getattr(import_module(module), cls), name, act)
    executor: Any = import_module("fleetrun.static.executor").Executor
    executor.run = _run


def _forbid(event: str, arguments: Any) -> None:
    if _State.building and event in _PROCESSES:
        raise Over


def _end(*arguments: Any, **keywords: Any) -> None:
    raise Over


def _leave_out(*arguments: Any, **keywords: Any) -> None:
    """Nothing."""


def _run(executor: Any, program: Any = None, feed: Any = None, fetch_list: Any = None, *others: Any,
         **keywords: Any) -> list[Any]:  # fmt: skip
    """Executor.run() of a start-up program, which fetches nothing; the build is over at any other."""
    if feed or fetch_list or program is None:
        raise Over
    return []


def _finding(script: str, error: BaseException, text: str) -> Finding:
    """Where in the user's files the error comes from."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_own(frame.filename)]
    place = (own[-1].filename, own[-1].lineno or 1) if own else (script, 1)
    known = isinstance(error, (AttributeError, ImportError, builtins.RuntimeError)) and "fleetrun" in type(
        error
    ).__module__ + str(error)
    what, instead = split_message(str(error)) if known else (text, "")
    return Finding(os.path.relpath(place[0]), place[1], 1, "build", "", what, instead)


def _is_own(path: str) -> bool:
    return os.path.isfile(path) and not path.startswith((_PACKAGE, *_libraries()))


def _libraries() -> tuple[str, ...]:
    import sysconfig

    return tuple(sysconfig.get_path(each) for each in ("stdlib", "platstdlib", "purelib", "platlib"))

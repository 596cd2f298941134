"""paddle.save and paddle.load: values in one file, as Paddle's own: a pickle with arrays where variables
were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetrun import framework
from fleetrun._error import Error
from fleetrun._types import Any

if TYPE_CHECKING:
    import os


def save(obj: Any, path: str | os.PathLike[str], protocol: int = 4, **configs: Any) -> None:
    """Writes arrays, values of a scope, numbers, texts, and dicts and lists of them to `path`.

    Throws: Error(config) naming what cannot be saved, Error(host) when the file cannot be written.
    """
    from fleetrun.static import io

    if not isinstance(protocol, int) or not 2 <= protocol <= 4:
        raise Error("config", f"paddle.save(protocol={protocol!r})", "use 2, 3 or 4")
    _only("paddle.save", configs, ("use_binary_format",))
    io.write_pickled(str(path), _plain(obj), protocol)


def load(path: str | os.PathLike[str], **configs: Any) -> Any:
    """What save() wrote, or Paddle's: arrays are NumPy's. Throws: Error(data) for a file that holds something
    else."""
    from fleetrun.static import io

    _only("paddle.load", configs, ("return_numpy", "keep_name_table"))
    return io.unpickled_object(str(path))


def _only(function, configs, known):
    for name, value in configs.items():
        if name not in known or name == "use_binary_format" and value:
            raise Error("config", f"{function}({name}={value!r}) is not supported", "leave it out")


def _plain(value):
    import numpy

    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(one) for one in value)
    if isinstance(value, framework.ScopeVariable):
        return numpy.array(value)
    if isinstance(value, (numpy.ndarray, numpy.generic, str, bytes, int, float, bool, type(None))):
        return value
    what = (
        f"the variable {value.name}, which has no value of its own"
        if isinstance(value, framework.Variable)
        else repr(value)
    )
    raise Error(
        "config", f"paddle.save: {what}", "save arrays: program.state_dict(), or what Executor.run fetched"
    )

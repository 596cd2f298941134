"""What a script finds around it: the words of its command line, its environment, and its files."""

from __future__ import annotations

import inspect
import os
import re
from typing import Any

from fleetrun._check.values import UNKNOWN, Listing

# What the launcher and the schedulers set: another value in each process.
_OF_THE_JOB = ("PADDLE_", "TRAINING_ROLE", "POD_", "FLAGS_", "PORT", "CUDA_", "SYS_", "FLEETRUN_", "RANK")
# What reads the file, or the folder, that it is given first.
_READS = {
    "builtins.open", "io.open", "codecs.open", "gzip.open", "os.listdir", "os.scandir", "os.stat",
    "os.path.getsize", "numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.fromfile", "pandas.read_csv",
}  # fmt: skip
# What asks for a file or folder.
ASKED = {f"os.path.{each.__name__}": each for each in (os.path.exists, os.path.isfile, os.path.isdir)}
# What may make files, or lead to other ones.
_MAKES = re.compile(
    r"save|dump|write|mkdir|makedirs|download|extract|copy|move|rename|retrieve|unpack|zip|link|touch|"
    r"mk.?temp|system|popen|spawn|exec|export|fetch|prepare|creat|generate|chdir",
    re.IGNORECASE,
)
_MAKES_NONE = ("builtins.", "copy.", "itertools.", "collections.", "typing.", "numpy.copy", "numpy.save_")
_MAKERS = ("subprocess.", "shutil.", "tarfile.", "zipfile.", "urllib.", "requests.", "tempfile.")


ARGUMENTS = "check it with its arguments, behind --"


class Surroundings:
    """The process of one script. words: its arguments, None where they are not known."""

    def __init__(self, script: str, words: list[str] | None) -> None:
        self.words = words
        self.is_asked = False  # for arguments or variables that a run may have, and the check has not
        self.argv: Any = UNKNOWN if words is None else Listing([script, *words])
        self._set: dict[str, Any] = {}
        self._sets_unknown = False
        self._makes_files = False  # of names that are not known
        self._made: list[str] = []  # files and folders by name

    def set_variable(self, name: Any, value: Any) -> None:
        """os.environ[name] = value."""
        if isinstance(name, str):
            self._set[name] = value
        else:
            self._sets_unknown = True

    def variable(self, name: Any, default: Any) -> Any:
        """os.environ.get(name, default)."""
        if not isinstance(name, str) or name.startswith(_OF_THE_JOB):
            return UNKNOWN
        if name in self._set:
            return self._set[name]
        self.is_asked = self.is_asked or name not in os.environ
        return UNKNOWN if self._sets_unknown else os.environ.get(name, default)

    def is_missing(self, function: str, args: list[Any], keywords: dict[str, Any]) -> str:
        """The file that the function is to read and that nobody can have made, "" where there is none."""
        path = args[0] if args else UNKNOWN
        mode = args[1] if len(args) > 1 else keywords.get("mode", "r")
        if function not in _READS or not isinstance(path, str) or "://" in path:
            return ""
        if function.endswith("open") and not (isinstance(mode, str) and mode[:1] == "r"):
            self._made.append(path)
            return ""
        return "" if os.path.exists(path) or self._may_be_made(path) else path or "''"

    def is_missing_saved(self, path: str) -> bool:
        """Whether what a run has saved under the path is not there, and nobody can have made it."""
        ends = ("", ".pdparams", ".pdmodel")
        return not self._may_be_made(path) and not any(os.path.exists(path + end) for end in ends)

    def is_there(self, function: str, path: Any) -> Any:
        """What is there now is there in a run; what is not may have been made by it."""
        if not isinstance(path, str):
            return UNKNOWN
        return ASKED[function](path) or (UNKNOWN if self._may_be_made(path) else False)

    def _may_be_made(self, path: str) -> bool:
        """Whether the run may have made it by now."""
        return self._makes_files or any(
            os.path.abspath(path).startswith(os.path.abspath(each)) for each in self._made
        )

    def note_call(self, function: str, name: str, args: list[Any]) -> None:
        """A call of what is neither the script's nor the package's: `name` is its last part."""
        if function in ("os.mkdir", "os.makedirs") and args and isinstance(args[0], str):
            self._made.append(args[0])
        elif function.startswith(_MAKERS) or (not function.startswith(_MAKES_NONE) and _MAKES.search(name)):
            self._makes_files = True


def set_by_script(around: Surroundings, method: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """os.environ.setdefault(name, value), .update(values) and .pop(name)."""
    name = args[0] if args else UNKNOWN
    if method == "setdefault" and len(args) > 1:
        before = around.variable(name, None)
        around.set_variable(name, args[1] if before is None else before)
        return args[1] if before is None else before
    values = getattr(name, "items", None) if method == "update" else {name: None} if method == "pop" else None
    for key, value in {**values, **keywords}.items() if isinstance(values, dict) else [(UNKNOWN, None)]:
        around.set_variable(key, value if method == "update" else UNKNOWN)
    return UNKNOWN


def saved_path(function: Any, args: list[Any], keywords: dict[str, Any]) -> str:
    """What a function of the package that loads is to read, "" where that is not known."""
    name = getattr(function, "__name__", "")
    if name == "create_predictor":
        model = getattr(args[0] if args else keywords.get("config"), "real", None)
        return model.prog_file() if model is not None and model.model_dir() else ""
    if not name.startswith("load"):
        return ""
    signature = inspect.signature(function)
    names = [
        each for each in ("path", "model_path", "dirname", "path_prefix") if each in signature.parameters
    ]
    try:
        given = signature.bind_partial(*args, **keywords).arguments.get(names[0]) if names else ""
    except TypeError:
        return ""
    return given if isinstance(given, str) else ""

"""`python -m fleetrun.launch [FLAGS] SCRIPT [ARGUMENTS]`: the command fleetrun, with this interpreter for the
script.

What `python -m paddle.distributed.launch` and `python -m torch.distributed.run` are to their launchers. This
process becomes fleetrun: nothing stands between it and whoever started it.
"""

import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence

__all__ = ["arguments_for", "find_command", "main"]


def find_command() -> str | None:
    """The fleetrun beside this interpreter, in its environment's scripts, or on PATH; None when there is
    none."""
    for directory in (os.path.dirname(sys.executable), sysconfig.get_path("scripts")):
        path = os.path.join(directory, "fleetrun")
        if os.access(path, os.X_OK):
            return path
    return shutil.which("fleetrun")


def arguments_for(words: Sequence[str]) -> list[str]:
    """fleetrun's arguments: the user's, behind what this interpreter adds."""
    added = [f"--python={sys.executable}"]
    if os.environ.get("FLEETRUN_COMPAT") == "paddle" and "paddle" in sys.modules:
        added.append("--compat=paddle")
    given = {word.split("=", 1)[0] for word in words}
    return [flag for flag in added if flag.split("=", 1)[0] not in given] + list(words)


def main(words: Sequence[str] | None = None) -> int:
    """Becomes fleetrun; returns only where there is none, with the exit status for that."""
    command = find_command()
    if command is None:
        sys.stderr.write(
            "fleetrun: error: the command fleetrun is not beside " + sys.executable + " and not on PATH\n"
            "  hint: install it for this interpreter: pip install .\n"
        )
        return 127
    sys.stdout.flush()
    os.execv(command, [command, *arguments_for(sys.argv[1:] if words is None else words)])


if __name__ == "__main__":
    sys.exit(main())

"""paddle.fluid.DataFeedDesc: the slots of a file of training data, as text."""

from __future__ import annotations

import json
import re

from fleetrun import _lazy
from fleetrun._error import Error
from fleetrun._types import Sequence

__all__ = ["DataFeedDesc"]


class DataFeedDesc:
    """Reads the text of a MultiSlotDataFeed description from a file; desc() gives it back with what was
    set. Slots that are used and their types are those of dataset.set_use_var in Paddle as here."""

    def __init__(self, proto_file: str) -> None:
        with open(proto_file, encoding="utf-8") as file:
            self._text = file.read()
        self._slots = {
            found.group(1): found.group(0)
            for found in re.finditer(r'slots\s*\{[^}]*?name:\s*"([^"]+)"[^}]*\}', self._text)
        }

    def set_batch_size(self, batch_size: int) -> None:
        """Examples per batch."""
        kept = re.sub(r"^\s*batch_size:.*\n?", "", self._text, flags=re.M)
        self._text = f"{kept.rstrip()}\nbatch_size: {int(batch_size)}\n"

    def _found(self, pattern: str, default: str) -> str:
        found = re.findall(pattern, self._text, flags=re.M)
        return found[-1] if found else default

    def _flag(self, names: Sequence[str], flag: str) -> None:
        for name in names:
            if name not in self._slots:
                raise Error("config", f"DataFeedDesc has no slot {name}")
            slot = self._slots[name]
            changed = re.sub(rf"{flag}:\s*\w+\s*", "", slot)
            changed = changed[: changed.rindex("}")] + f"  {flag}: true\n  }}"
            self._text = self._text.replace(slot, changed)
            self._slots[name] = changed

    def set_dense_slots(self, dense_slots_name: Sequence[str]) -> None:
        """Slots with a fixed number of values."""
        self._flag(dense_slots_name, "is_dense")

    def set_use_slots(self, use_slots_name: Sequence[str]) -> None:
        """Slots that are read."""
        self._flag(use_slots_name, "is_used")

    def set_pipe_command(self, pipe_command: str) -> None:
        """What turns a file into MultiSlot text, of which AsyncExecutor starts one for each file."""
        kept = re.sub(r"^\s*pipe_command:.*\n?", "", self._text, flags=re.M)
        self._text = f"{kept.rstrip()}\npipe_command: {json.dumps(pipe_command)}\n"

    @property
    def batch_size(self) -> int:
        """Examples per batch."""
        return int(self._found(r"^\s*batch_size:\s*(\d+)", "1"))

    @property
    def pipe_command(self) -> str:
        """What was given to set_pipe_command(), or stands in the file."""
        return json.loads(self._found(r"^\s*pipe_command:\s*(\".*\")", '"cat"'))

    def slots(self) -> list[tuple[str, str, bool]]:
        """(name, int64 or float32, whether it is used) of each slot of a line, in order."""
        return [
            (name, "float32" if re.search(r'type:\s*"float"', slot) else "int64", "is_used: true" in slot)
            for name, slot in self._slots.items()
        ]

    def desc(self) -> str:
        """The text."""
        return self._text


__getattr__, __dir__ = _lazy.attach(__name__)

"""A launcher that a process of ours starts in its turn (torchrun in a script, for a job of its own) hands on
the variables of the job around it, which would tell each of its ranks that it is the one that started it."""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself would be a module more

if TYPE_CHECKING:
    from collections.abc import MutableMapping

__all__ = ["leave"]

_PLACE = ("TRAINER_ID", "TRAINERS_NUM", "TRAINER_ENDPOINTS", "CURRENT_ENDPOINT", "MASTER")


def leave(environ: MutableMapping[str, str]) -> None:
    """Takes them away where torchrun is the inner one: fleetrun says False in the place of its True."""
    if environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" and "FLEETRUN_RANK" in environ:
        for name in _PLACE:
            environ.pop(f"PADDLE_{name}", None)

"""paddle.distributed.fleet.utils.log_util: the logger of Fleet, and how much it says."""

from __future__ import annotations

import logging

from fleetrun._error import Error

__all__ = ["get_log_level_code", "get_log_level_name", "logger", "set_log_level"]

logger = logging.getLogger("FLEET")
logger.setLevel(logging.INFO)


def set_log_level(level: int | str) -> None:
    """Takes a level of logging: a number, or a name such as "DEBUG" or "info". Throws: Error(config)."""
    if not isinstance(level, (int, str)):
        raise Error("config", f"fleet.set_log_level({level!r})", 'give a number, or a name such as "INFO"')
    logger.setLevel(level if isinstance(level, int) else level.upper())


def get_log_level_code() -> int:
    """The level as a number."""
    return logger.getEffectiveLevel()


def get_log_level_name() -> str:
    """The level's name."""
    return logging.getLevelName(get_log_level_code())

"""paddle.utils.deprecated and try_import."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable
from typing import Any

from fleetrun import _lazy

__all__ = ["deprecated", "try_import"]


def deprecated(
    update_to: str = "", since: str = "", reason: str = "", level: int = 0
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function warns when it is called. level: 2 raises RuntimeError instead."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        instead = f', use "{update_to}" instead' if update_to else ""
        text = f'"{function.__module__}.{function.__name__}" is deprecated since {since}{instead}. {reason}'

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if level == 2:
                raise RuntimeError(text)
            warnings.warn(text.strip(), DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        return wrapper

    return decorate


def try_import(module_name: str, err_msg: str | None = None) -> Any:
    """The module of this name. Throws: ImportError that says how to install it, or err_msg."""
    try:
        return importlib.import_module(module_name)
    except ImportError as error:
        text = f"{module_name} cannot be imported; perhaps it is not installed: pip install {module_name}"
        raise ImportError(err_msg or text) from error


__getattr__, __dir__ = _lazy.attach(__name__)

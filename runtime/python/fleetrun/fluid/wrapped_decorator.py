"""paddle.base.wrapped_decorator: decorators that keep a function's signature."""

import contextlib
import functools

from fleetrun._types import Any, Callable

__all__ = ["signature_safe_contextmanager", "wrap_decorator"]


def wrap_decorator(decorator_func: Callable[..., Any]) -> Callable[..., Any]:
    """decorator_func, whose functions look like those that they are made of."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(func)(decorator_func(func))

    return decorate


signature_safe_contextmanager = contextlib.contextmanager

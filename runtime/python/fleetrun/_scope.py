"""Scopes: values by name, kept from run to run. The global one belongs to the process, as in Paddle."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from fleetrun import _native
from fleetrun._elements import Elements
from fleetrun._error import Error

if TYPE_CHECKING:
    import numpy
    from numpy.typing import ArrayLike

_scope = None


class Scope:
    """Values by name. find_var(name).get_tensor() gives the tensor; numpy.array(tensor) its values."""

    def __init__(self) -> None:
        self.native = _native.Scope()
        self._parent: Scope | None = None
        self._elsewhere: dict[Callable[[_native.Scope], None], Collection[str]] = {}

    def find_var(self, name: str) -> ScopeVariable | None:
        """The value of this name, here or in the scope that this one was made of by new_scope(), or None."""
        if not self.native.has(name) and self._parent is not None:
            return self._parent.find_var(name)
        return ScopeVariable(self, name) if self.native.has(name) else None

    def new_scope(self) -> Scope:
        """A scope of its own, whose find_var() looks here, too."""
        made = Scope()
        made._parent = self
        return made

    def drop_kids(self) -> None:
        """Nothing: a scope of new_scope() goes with the last that holds it."""

    def var(self, name: str) -> ScopeVariable:
        """The value of this name, made empty when it is not there."""
        self.native.make(name)
        return ScopeVariable(self, name)

    def local_var_names(self) -> list[str]:
        """The names of all values."""
        return self.native.names()

    def lie_elsewhere(
        self, fetch: Callable[[_native.Scope], None], names: Callable[[], Collection[str]]
    ) -> None:
        """What names() hold is newer elsewhere: `fetch` puts it here once one of them is looked at. Not in
        Paddle."""
        if fetch not in self._elsewhere:
            self._elsewhere[fetch] = names()

    def look_at(self, name: str) -> _native.Scope:
        """The native scope, with the newest value of this name. Not in Paddle."""
        if any(name in names for names in self._elsewhere.values()):
            self.catch_up()
        return self.native

    def catch_up(self) -> None:
        """Gets what lies elsewhere, before nobody can any more. Not in Paddle."""
        late, self._elsewhere = self._elsewhere, {}
        for fetch in late:
            fetch(self.native)


class ScopeVariable(Elements):
    """One value of a Scope: numpy reads it, set() replaces it."""

    def __init__(self, scope: Scope, name: str) -> None:
        self._scope = scope
        self.name = name

    def get_tensor(self) -> ScopeVariable:
        """Itself: the tensor."""
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray:
        import numpy

        value = numpy.asarray(self._scope.look_at(self.name).value(self.name))
        return value if dtype is None else value.astype(dtype)

    def shape(self) -> list[int]:
        """Sizes; [0] of what nothing was put in."""
        return list(self.__array__().shape) if self._is_initialized() else [0]

    def _is_initialized(self) -> bool:
        """Whether it has values."""
        try:
            return self.__array__().size > 0
        except Error:
            return False

    def lod(self) -> list[list[int]]:
        """[]: what a scope keeps is no sequences."""
        return []

    recursive_sequence_lengths = lod

    def set(self, array: ArrayLike, place: Any = None) -> None:
        """Copies `array` in; type and shape become the array's. What is int64 remains
        so where int32 values come, for the sake of programs that read it as int64."""
        import numpy

        values = numpy.ascontiguousarray(array)
        if values.dtype == numpy.int32 and self._is_initialized():
            before = self.__array__()
            values = values.astype(before.dtype) if before.dtype == numpy.int64 else values
        self._scope.look_at(self.name).set_value(self.name, values)


def global_scope() -> Scope:
    """The process's scope: parameters and metrics by name, kept from run to run."""
    global _scope
    if _scope is None:
        _scope = Scope()
    return _scope


@contextlib.contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Within `with`, `scope` is the global scope."""
    global _scope
    before, _scope = global_scope(), scope
    try:
        yield
    finally:
        _scope = before

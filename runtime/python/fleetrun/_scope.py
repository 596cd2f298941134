"""Scopes: values by name, kept from run to run. The global one belongs to the process, as in Paddle."""

import contextlib

from fleetrun import _native

_scope = None


class Scope:
    """Values by name. find_var(name).get_tensor() gives the tensor; numpy.array(tensor) its values."""

    def __init__(self):
        self.native = _native.Scope()

    def find_var(self, name):
        """The value of this name, or None."""
        return ScopeVariable(self.native, name) if self.native.has(name) else None

    def var(self, name):
        """The value of this name, made empty when it is not there."""
        self.native.make(name)
        return ScopeVariable(self.native, name)

    def local_var_names(self):
        """The names of all values."""
        return self.native.names()


class ScopeVariable:
    """One value of a Scope: numpy reads it, set() replaces it."""

    def __init__(self, scope, name):
        self._scope = scope
        self.name = name

    def get_tensor(self):
        """Itself: the tensor."""
        return self

    def __array__(self, dtype=None, copy=None):
        import numpy

        value = numpy.asarray(self._scope.value(self.name))
        return value if dtype is None else value.astype(dtype)

    def shape(self):
        """Sizes."""
        return list(self.__array__().shape)

    _get_dims = shape  # what scripts call that zero a metric's counters

    def set(self, array, place=None):
        """Copies `array` in; type and shape become the array's."""
        import numpy

        self._scope.set_value(self.name, numpy.ascontiguousarray(array))


def global_scope():
    """The process's scope: parameters and metrics by name, kept from run to run."""
    global _scope
    if _scope is None:
        _scope = Scope()
    return _scope


@contextlib.contextmanager
def scope_guard(scope):
    """Within `with`, `scope` is the global scope."""
    global _scope
    before, _scope = global_scope(), scope
    try:
        yield
    finally:
        _scope = before

"""Operators: the methods of a variable, which are the functions of fleetrun/tensor.py.

The class is empty until fleetrun/_methods.py, above those functions, fills it. Editors find its methods in
_operators.pyi.
"""

from fleetrun._lazy import missing


class Operators:
    """Base of Variable."""

    def __getattr__(self, name: str) -> object:
        raise AttributeError(missing("paddle.Tensor", name, dir(type(self))))

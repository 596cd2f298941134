"""Operators: the methods of a variable, which are the functions of fleetrun/tensor.py.

The class is empty until fleetrun/_methods.py, above those functions, fills it. Editors find its methods in
_operators.pyi.
"""

from fleetrun._lazy import MissingName


class Operators:
    """Base of Variable."""

    def __getattr__(self, name: str) -> object:
        raise MissingName("paddle.Tensor", name, lambda: dir(type(self)))

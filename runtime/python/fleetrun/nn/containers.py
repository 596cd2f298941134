"""Layers that hold layers."""

from __future__ import annotations

from fleetrun._types import Any, Iterable, Iterator
from fleetrun.nn._layer import Layer

__all__ = ["Identity", "LayerDict", "LayerList", "ParameterList", "Sequential"]


class Sequential(Layer):
    """Calls its layers one after the other. Takes layers, or (name, layer) pairs."""

    def __init__(self, *layers: Layer | tuple[str, Layer]) -> None:
        super().__init__()
        for index, layer in enumerate(layers):
            name, layer = layer if isinstance(layer, tuple) else (str(index), layer)
            self.add_sublayer(name, layer)

    def forward(self, input: Any) -> Any:
        for layer in self._sub_layers.values():
            input = layer(input)
        return input

    def __getitem__(self, index: int) -> Layer:
        return list(self._sub_layers.values())[index]

    def __len__(self) -> int:
        return len(self._sub_layers)


class LayerList(Layer):
    """A list whose layers are registered."""

    def __init__(self, sublayers: Iterable[Layer] | None = None) -> None:
        super().__init__()
        self.extend(sublayers or ())

    def append(self, sublayer: Layer) -> LayerList:
        """Adds one layer."""
        self.add_sublayer(len(self), sublayer)
        return self

    def extend(self, sublayers: Iterable[Layer]) -> LayerList:
        """Adds layers."""
        for sublayer in sublayers:
            self.append(sublayer)
        return self

    def __getitem__(self, index: int) -> Layer:
        return list(self._sub_layers.values())[index]

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._sub_layers.values())


class LayerDict(Layer):
    """A dict whose layers are registered."""

    def __init__(self, sublayers: Any = None) -> None:
        super().__init__()
        self.update(sublayers or {})

    def update(self, sublayers: Any) -> None:
        """Adds layers: a dict, or (name, layer) pairs."""
        for name, layer in sublayers.items() if hasattr(sublayers, "items") else sublayers:
            self.add_sublayer(name, layer)

    def keys(self) -> Any:
        """The names."""
        return self._sub_layers.keys()

    def values(self) -> Any:
        """The layers."""
        return self._sub_layers.values()

    def items(self) -> Any:
        """(name, layer) of each."""
        return self._sub_layers.items()

    def pop(self, key: str) -> Layer:
        """Takes one out."""
        return self._sub_layers.pop(key)

    def clear(self) -> None:
        """Takes all out."""
        self._sub_layers.clear()

    def __getitem__(self, key: str) -> Layer:
        return self._sub_layers[key]

    def __setitem__(self, key: str, layer: Layer) -> None:
        self.add_sublayer(key, layer)

    def __delitem__(self, key: str) -> None:
        del self._sub_layers[key]

    def __contains__(self, key: str) -> bool:
        return key in self._sub_layers

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sub_layers)


class ParameterList(Layer):
    """A list whose parameters are registered."""

    def __init__(self, parameters: Iterable[Any] | None = None) -> None:
        super().__init__()
        for parameter in parameters or ():
            self.append(parameter)

    def append(self, parameter: Any) -> ParameterList:
        """Adds one parameter."""
        self.add_parameter(str(len(self)), parameter)
        return self

    def __getitem__(self, index: int) -> Any:
        return list(self._parameters.values())[index]

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())


class Identity(Layer):
    """Gives what it is given."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input

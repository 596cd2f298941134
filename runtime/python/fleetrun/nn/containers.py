"""Layers that hold layers."""

from __future__ import annotations

from fleetrun._types import Any, Iterable, Iterator
from fleetrun.nn.layer import Layer

__all__ = ["LayerList", "Sequential"]


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

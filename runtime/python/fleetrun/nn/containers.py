"""Layers that hold layers."""

from fleetrun.nn.layer import Layer


class Sequential(Layer):
    """Calls its layers one after the other. Takes layers, or (name, layer) pairs."""

    def __init__(self, *layers):
        super().__init__()
        for index, layer in enumerate(layers):
            name, layer = layer if isinstance(layer, tuple) else (str(index), layer)
            self.add_sublayer(name, layer)

    def forward(self, input):  # noqa: A002, Paddle's argument name
        for layer in self._sub_layers.values():
            input = layer(input)
        return input

    def __getitem__(self, index):
        return list(self._sub_layers.values())[index]

    def __len__(self):
        return len(self._sub_layers)


class LayerList(Layer):
    """A list whose layers are registered."""

    def __init__(self, sublayers=None):
        super().__init__()
        self.extend(sublayers or ())

    def append(self, sublayer):
        """Adds one layer."""
        self.add_sublayer(len(self), sublayer)
        return self

    def extend(self, sublayers):
        """Adds layers."""
        for sublayer in sublayers:
            self.append(sublayer)
        return self

    def __getitem__(self, index):
        return list(self._sub_layers.values())[index]

    def __len__(self):
        return len(self._sub_layers)

    def __iter__(self):
        return iter(self._sub_layers.values())

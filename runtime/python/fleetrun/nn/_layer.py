"""Layer: the base of all layers. Holds parameters and sublayers by name; calling it builds operators."""

from __future__ import annotations

import functools
import inspect
import re

from fleetrun import framework
from fleetrun._lazy import missing
from fleetrun._types import Any, Callable, DTypeLike, Initializer, Iterator, Parameter, ParamLike, Sequence

__all__ = ["Layer"]


def _snake_case(name):
    """Paddle's: BatchNorm1D is batch_norm1d, GRUCell gru_cell, PReLU p_re_lu."""
    return re.sub("([a-z])([A-Z])", r"\1_\2", re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)).lower()


def _remembering(init: Any) -> Any:
    """`init`, which keeps its arguments."""

    @functools.wraps(init)
    def remembering(self: Any, *args: Any, **kwargs: Any) -> None:
        self.__dict__.setdefault("_made_with", []).append((init, args, kwargs))
        init(self, *args, **kwargs)

    return remembering


class Layer:
    """A part of a model. Subclasses make parameters and sublayers in __init__ and use them in forward()."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith("fleetrun.") and "__init__" in cls.__dict__:
            cls.__init__ = _remembering(cls.__init__)  # type: ignore[method-assign]

    def __init__(self, name_scope: str | None = None, dtype: DTypeLike = "float32") -> None:
        set_attribute = object.__setattr__
        set_attribute(self, "training", True)
        set_attribute(self, "_parameters", {})
        set_attribute(self, "_sub_layers", {})
        prefix = name_scope or _snake_case(type(self).__name__)
        set_attribute(self, "_full_name", framework.unique_name(prefix))

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Builds the layer's operators; subclasses write it."""
        raise NotImplementedError(f"{type(self).__name__}.forward")

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.forward(*inputs, **kwargs)

    def full_name(self) -> str:
        """The layer's unique name; its parameters' names begin with it."""
        return self._full_name

    def create_parameter(
        self,
        shape: Sequence[int],
        attr: ParamLike = None,
        dtype: DTypeLike = "float32",
        is_bias: bool = False,
        default_initializer: Initializer | None = None,
    ) -> Parameter:
        """A parameter named after this layer; see paddle.create_parameter."""
        return framework.make_parameter(
            self._full_name, shape, dtype or "float32", attr, is_bias, default_initializer, named=True
        )

    def add_sublayer(self, name: str | int, sublayer: Layer) -> Layer:
        """Registers `sublayer` under `name` and returns it."""
        self._sub_layers[str(name)] = sublayer
        return sublayer

    def add_parameter(self, name: str, parameter: Parameter | None) -> Parameter | None:
        """Registers `parameter` (or None) under `name` and returns it."""
        if parameter is not None:
            self._parameters[str(name)] = parameter
        return parameter

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, framework.Parameter):
            self._parameters[name] = value
        elif isinstance(value, Layer):
            self._sub_layers[name] = value
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        for registry in ("_sub_layers", "_parameters"):
            found = self.__dict__.get(registry, {})
            if name in found:
                return found[name]
        given = {} if name.startswith("__") else self._given()
        if name.removeprefix("_") in given:
            return given[name.removeprefix("_")]
        raise AttributeError(f"{type(self).__name__}: {missing('paddle.nn.Layer', name, dir(type(self)))}")

    def _given(self) -> dict[str, Any]:
        """What a layer of the package was made with, by name, defaults included: Paddle's layers keep it as
        attributes, some with a _ before the name (_embedding_dim)."""
        found: dict[str, Any] = {}
        for init, args, kwargs in self.__dict__.get("_made_with", ()):
            bound = inspect.signature(init).bind(self, *args, **kwargs)
            bound.apply_defaults()
            found.update(bound.arguments)
        return found

    def apply(self, fn: Callable[[Layer], Any]) -> Layer:
        """Calls fn(layer) for every layer below this one, depth first, and then for this one; returns it."""
        for layer in self.children():
            layer.apply(fn)
        fn(self)
        return self

    def named_children(self) -> Iterator[tuple[str, Layer]]:
        """(name, layer) of the layers directly below this one."""
        return iter(self._sub_layers.items())

    def named_sublayers(self, prefix: str = "", include_self: bool = False) -> Iterator[tuple[str, Layer]]:
        """(name, layer) of every layer below this one, depth first, each once."""
        seen = set()
        stack = [(prefix, self)]
        while stack:
            name, layer = stack.pop()
            if id(layer) in seen:
                continue
            seen.add(id(layer))
            if layer is not self or include_self:
                yield name, layer
            below = [(f"{name}.{child}" if name else child, sub) for child, sub in layer._sub_layers.items()]
            stack += reversed(below)

    def sublayers(self, include_self: bool = False) -> list[Layer]:
        """Every layer below this one."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def children(self) -> Iterator[Layer]:
        """The layers directly below this one."""
        return iter(self._sub_layers.values())

    def named_parameters(
        self, prefix: str = "", include_sublayers: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(name, parameter) of this layer and those below it, each once."""
        seen = set()
        layers = self.named_sublayers(prefix, include_self=True) if include_sublayers else [(prefix, self)]
        for name, layer in layers:
            for child, parameter in layer._parameters.items():
                if parameter.name not in seen:
                    seen.add(parameter.name)
                    yield (f"{name}.{child}" if name else child), parameter

    def parameters(self, include_sublayers: bool = True) -> list[Parameter]:
        """The parameters of this layer and those below it."""
        return [parameter for _, parameter in self.named_parameters(include_sublayers=include_sublayers)]

    def train(self) -> None:
        """Dropout drops in operators that are built from now on."""
        self._set_training(True)

    def eval(self) -> None:
        """Dropout keeps everything in operators that are built from now on."""
        self._set_training(False)

    def _set_training(self, training):
        for layer in self.sublayers(include_self=True):
            object.__setattr__(layer, "training", training)

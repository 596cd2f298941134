"""The parameter of a layer whose rows are on servers: what optimizers see of it. Its values are nobody's, so
what would set them or compute with them is refused."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from fleetrun._arguments import as_list
from fleetrun._error import Error

if TYPE_CHECKING:
    import weakref

__all__ = ["Values", "Weight", "plainly", "refuse_matrix", "refuse_pickle", "refuse_rows"]

# Within it a Weight is as any tensor: what a layer does with its own, without a call of Python for each.
plainly = getattr(torch._C, "DisableTorchFunctionSubclass", None) or torch._C.DisableTorchFunction


class Weight(torch.nn.Parameter):
    """What an optimizer, a gradient scaler and clipping see of a layer: its gradient, float [rows, width], is
    that of the distinct rows that backward passes have touched since the last step."""

    # Nothing to average or to broadcast: servers add up what trainers push.
    _ddp_ignored = True
    layer: weakref.ref[Any]

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), named: Any = None) -> Any:
        """Refuses what would fill it or compute with it. Throws: Error(config)."""
        _check_use(function, args, named)
        return super().__torch_function__(function, types, args, named or {})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """That of a copy of its layer: an optimizer copied with its model has the copy's parameters."""
        layer = self.layer()
        return self if layer is None else copy.deepcopy(layer, memo).weight

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Throws: Error(config)."""
        refuse_pickle(self.layer())

    @property
    def data(self) -> torch.Tensor:
        """As of any parameter; a matrix of the table's rows has no place here."""
        values = super().data.as_subclass(Values)
        values.layer = self.layer
        return values

    @data.setter
    def data(self, values: torch.Tensor) -> None:
        if values.shape != self.shape:
            refuse_matrix(self.layer(), values)
        self.set_values(values)

    def set_values(self, values: torch.Tensor) -> None:
        """Of another number of rows."""
        torch.Tensor.data.__set__(self, values)


class Values(torch.Tensor):
    """The data of a Weight."""

    layer: weakref.ref[Any]

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), named: Any = None) -> Any:
        """As a Weight's, and gives tensors of no kind of its own. Throws: Error(config)."""
        _check_use(function, args, named)
        return torch._C._disabled_torch_function_impl(function, types, args, named or {})


# What changes a tensor without a value of its rows.
_HARMLESS = ("requires_grad_", "detach_", "share_memory_")
# What asks for no value of its rows, or gives a tensor of its kind.
_ASKS = {
    "__deepcopy__", "__delete__", "__dlpack_device__", "__eq__", "__format__", "__get__", "__hash__",
    "__len__", "__ne__", "__reduce_ex__", "__repr__", "__set__", "__setstate__", "allclose", "bfloat16",
    "clone", "contiguous", "cpu", "cuda", "data_ptr", "detach", "dim", "double", "element_size", "eq",
    "equal", "expand_as", "float", "get_device", "half", "has_names", "isfinite", "isinf", "isnan",
    "ndimension", "ne", "nelement", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", "numel",
    "pin_memory", "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "size", "storage",
    "storage_offset", "storage_type", "stride", "to", "type", "type_as", "untyped_storage", "view_as",
}  # fmt: skip
_VIEWS = ("H", "T", "imag", "mH", "mT", "real")  # attributes that are tensors of its values


def _check_use(function: Any, args: Any, named: Any) -> None:
    """Throws: Error(config), where a function would set values of the rows, which are not here, or compute
    with them, as a layer does that shares the weight."""
    name = str(getattr(function, "__name__", ""))
    if name == "__get__":  # of an attribute, as most calls are
        name = str(getattr(getattr(function, "__self__", None), "__name__", ""))
        if name in _VIEWS:
            _refuse_use(args[0], name)
        return
    if name in _HARMLESS:
        return
    is_operator = name == "__setitem__" or (
        name.startswith("__i") and name not in ("__invert__", "__index__")
    )
    if is_operator or (name.endswith("_") and not name.endswith("__")):
        filled = args[0] if args else (named or {}).get("tensor")
        if isinstance(filled, (Weight, Values)):
            refuse_rows(filled.layer(), f"is changed by {name}()")
    elif (
        name in _ASKS
        or name.startswith("is_")
        or name.endswith("_like")
        or (name.startswith("_") and not name.startswith(("__", "_foreach_")))
    ):
        return
    for given in (*args, *(named or {}).values()):
        for each in as_list(given):
            _refuse_use(each, f"{name}()")


def _refuse_use(given: Any, name: str) -> None:
    if isinstance(given, (Weight, Values)):
        refuse_rows(
            given.layer(), f"is used by {name}", "the layer itself gives rows: call it with their ids"
        )


def refuse_matrix(layer: Any, values: Any) -> NoReturn:
    """Throws: Error(config), for a matrix in the place of the weight."""
    refuse_rows(layer, "is set to " + ("None" if values is None else str(list(values.shape))))


def refuse_rows(layer: Any, done: str, hint: str = "") -> NoReturn:
    """Throws: Error(config) that says what was done to the weight."""
    table = layer.table if layer is not None else ""
    raise Error(
        "config",
        f"the weight of the layer of table '{table}' {done}, and its rows are on the servers",
        hint
        or "the table's initializer makes the first values; assign() sets rows, and ps.Client.load reads "
        "saved ones",
    )


def refuse_pickle(layer: Any) -> NoReturn:
    """Throws: Error(config), for a layer or its weight in a file."""
    table = layer.table if layer is not None else ""
    raise Error(
        "config",
        f"the layer of table '{table}' is to be pickled, and its rows are on the servers",
        "save model.state_dict(), and the rows by ps.Client.save; a process of its own makes its own layer",
    )

"""paddle.base.layer_helper.LayerHelper: what models that define layers of their own make parameters with."""

from __future__ import annotations

from fleetrun import _lazy, framework
from fleetrun._error import Error
from fleetrun._types import Any, DTypeLike, Initializer, Parameter, ParamLike, Sequence, Variable

__all__ = ["LayerHelper"]


class LayerHelper:
    """Names of a layer, its parameters, bias and activation. Operators of the engine are made by functions of
    paddle; append_op refuses by name."""

    def __init__(self, layer_type: str, **kwargs: Any) -> None:
        self.layer_type = layer_type
        self.kwargs = kwargs
        self.name = kwargs.get("name") or framework.unique_name(layer_type)

    @property
    def main_program(self) -> framework.Program:
        """The program that is built."""
        return framework.default_main_program()

    @property
    def startup_program(self) -> framework.Program:
        """The program that gives parameters their first values."""
        return framework.default_startup_program()

    @property
    def param_attr(self) -> ParamLike:
        """The parameter's attribute."""
        return self.kwargs.get("param_attr")

    @property
    def bias_attr(self) -> ParamLike:
        """The bias's attribute."""
        return self.kwargs.get("bias_attr")

    def input(self, input_param_name: str = "input") -> Variable:
        """The one input."""
        given = self.kwargs[input_param_name]
        return given[0] if isinstance(given, (list, tuple)) else given

    def input_dtype(self, input_param_name: str = "input") -> Any:
        """Its type."""
        return self.input(input_param_name).dtype

    def create_parameter(
        self,
        attr: ParamLike,
        shape: Sequence[int],
        dtype: DTypeLike | None = None,
        is_bias: bool = False,
        default_initializer: Initializer | None = None,
        stop_gradient: bool = False,
    ) -> Parameter:
        """A parameter named after this layer."""
        return framework.make_parameter(
            self.name, shape, dtype or "float32", attr, is_bias, default_initializer, named=True
        )

    def append_op(self, type: str = "", **kwargs: Any) -> Any:
        """Refused. Throws: Error(config)."""
        raise Error(
            "config",
            f"LayerHelper.append_op(type={type!r}): operators of Paddle are not those of the engine",
            "use the function of paddle that computes it",
        )

    def create_variable_for_type_inference(self, dtype: DTypeLike, stop_gradient: bool = False) -> Any:
        """Refused, as append_op() is. Throws: Error(config)."""
        return self.append_op("create_variable_for_type_inference")

    def append_activation(self, input_var: Variable) -> Variable:
        """`act` of input_var."""
        from fleetrun.static.activated import activated

        return activated(self.layer_type, self.kwargs.get("act"), input_var)


__getattr__, __dir__ = _lazy.attach(__name__)

"""paddle.base.layer_helper.LayerHelper: what models that define layers of their own make parameters with."""

from __future__ import annotations

from fleetrun import _lazy, framework, tensor
from fleetrun._arguments import as_list
from fleetrun._types import Any, DTypeLike, Initializer, Parameter, ParamLike, Sequence, Variable

__all__ = ["LayerHelper", "LayerHelperBase"]


class LayerHelper:
    """Names of a layer, its parameters, variables, bias and activation, and some operators by their types."""

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

    def append_op(
        self,
        type: str = "",
        inputs: Any = None,
        outputs: Any = None,
        attrs: Any = None,
        stop_gradient: bool = False,
    ) -> Any:
        """An operator of Paddle by its type, as far as there are such (fluid/_appended.py). Throws:
        Error(config) naming another one."""
        from fleetrun.fluid._appended import append_op

        append_op(type, inputs, outputs, attrs)

    def create_variable_for_type_inference(
        self, dtype: DTypeLike, stop_gradient: bool = False, shape: Sequence[int] | None = None
    ) -> Variable:
        """A variable for append_op to write to."""
        return self.create_variable(dtype=dtype, stop_gradient=stop_gradient, shape=shape or ())

    create_tmp_variable = create_variable_for_type_inference

    def create_variable(self, *args: Any, **kwargs: Any) -> Variable:
        """Program.create_var, named after the layer unless it has a name."""
        kwargs.setdefault("name", framework.unique_name(self.name + ".tmp"))
        return self.main_program.create_var(*args, **kwargs)

    def create_global_variable(self, persistable: bool = False, *args: Any, **kwargs: Any) -> Variable:
        """create_variable() of what the scope keeps."""
        return self.create_variable(*args, persistable=persistable, **kwargs)

    def create_or_get_global_variable(self, name: str, *args: Any, **kwargs: Any) -> tuple[Variable, bool]:
        """(the variable of this name, whether it is new)."""
        if self.main_program.has_var(name):
            return self.main_program.var(name), False
        return self.create_global_variable(*args, name=name, **kwargs), True

    def set_variable_initializer(self, var: Variable, initializer: Initializer) -> Variable:
        """Gives a variable its first value in the start-up program."""
        startup, shape = self.startup_program, [int(size) for size in var.shape]
        if not startup.has_var(var.name):
            startup.native.add_variable(var.name, var.dtype.name, shape, persistable=True)
        initializer.append(startup, var.name, shape, var.dtype.name)
        return startup.var(var.name)

    def get_parameter(self, name: str) -> Parameter:
        """The parameter of this name. Throws: ValueError where it is none."""
        for parameter in self.main_program.all_parameters():
            if parameter.name == name:
                return parameter
        raise ValueError(f"no Parameter name {name} found")

    def append_bias_op(self, input_var: Variable, dim_start: int = 1, dim_end: int | None = None) -> Variable:
        """input_var and a bias over its axes from dim_start to before dim_end; input_var itself where
        bias_attr is False."""
        if self.bias_attr is False:
            return input_var
        shape = list(input_var.shape[dim_start:dim_end])
        bias: Variable = self.create_parameter(self.bias_attr, shape, input_var.dtype, is_bias=True)
        for _ in range(input_var.ndim - dim_start - len(shape)):
            bias = tensor.unsqueeze(bias, -1)
        return input_var + bias

    def multiple_input(self, input_param_name: str = "input") -> list[Variable]:
        """The inputs, as a list."""
        return as_list(self.kwargs.get(input_param_name, []))

    def is_instance(self, param_name: str, cls: Any) -> None:
        """Throws: TypeError for an argument that is not of a class."""
        if not isinstance(self.kwargs.get(param_name), cls):
            raise TypeError(f"{self.layer_type}: {param_name} should be {cls}")

    def append_activation(self, input_var: Variable) -> Variable:
        """`act` of input_var."""
        from fleetrun.static.activated import activated

        return activated(self.layer_type, self.kwargs.get("act"), input_var)


# Paddle's has the part that needs no input.
LayerHelperBase = LayerHelper

__getattr__, __dir__ = _lazy.attach(__name__)

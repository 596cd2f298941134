"""paddle.framework: programs, variables and scopes as a script sees them, and all that computes on them."""

from fleetrun import _lazy, _unusable
from fleetrun import _methods as _methods
from fleetrun._graph import (
    Program,
    UniqueNameGenerator,
    append,
    create_parameter,
    default_main_program,
    default_startup_program,
    make_parameter,
    name_scope,
    program_guard,
    redirected,
    redirected_as,
    seed,
    standing_for,
    switch_main_program,
    switch_startup_program,
    switch_unique_name,
    temporaries,
    unique_name,
    unique_name_guard,
)
from fleetrun._param_attr import ParamAttr, WeightNormParamAttr
from fleetrun._scope import Scope, ScopeVariable, global_scope, scope_guard
from fleetrun._variable import Parameter, Variable

__all__ = [
    "append", "create_parameter", "default_main_program", "default_startup_program", "global_scope",
    "make_parameter", "name_scope", "ParamAttr", "Parameter", "Program", "program_guard", "redirected",
    "redirected_as",
    "Scope", "scope_guard", "ScopeVariable", "seed", "standing_for", "switch_main_program",
    "switch_startup_program", "switch_unique_name", "temporaries", "unique_name", "unique_name_guard",
    "UniqueNameGenerator", "Variable", "WeightNormParamAttr",
]  # fmt: skip

_found, __dir__ = _lazy.attach(
    __name__,
    {
        "core": "core",
        "io_utils": "static.io_utils",
        **_lazy.names("_saving", "save load"),
        **_lazy.names("_mode", "get_default_dtype set_default_dtype in_dynamic_mode set_flags get_flags"),
        "_dygraph_guard": "_mode:dygraph_guard",
        "_get_var": "_graph:get_var",
        "_current_expected_place": "_places:CPUPlace",
        **{
            name: "_mode:in_dynamic_mode"
            for name in ("in_dygraph_mode", "_non_static_mode", "in_pir_mode", "in_dynamic_or_pir_mode")
        },
        **_lazy.names("_places", "CPUPlace CUDAPlace CUDAPinnedPlace cpu_places cuda_places xpu_places"),
        **_lazy.names("_places", "is_compiled_with_cuda is_compiled_with_xpu is_compiled_with_rocm"),
        **_lazy.names("_places", "require_version device_guard"),
        **_lazy.names("static.io_utils", "is_parameter is_belong_to_optimizer"),
        "convert_np_dtype_to_dtype_": "_dtypes:of",
        "grad_var_name": "fluid.backward:grad_var_name",
        "Executor": "static.executor:Executor",
    },
)
__getattr__ = _unusable.beside(_found, "paddle.framework", "IrGraph IrNode OpProtoHolder")

"""paddle.framework: programs, variables and scopes as a script sees them, and all that computes on them."""

from fleetrun import _lazy
from fleetrun import _methods as _methods
from fleetrun._graph import (
    Program,
    append,
    create_parameter,
    default_main_program,
    default_startup_program,
    make_parameter,
    name_scope,
    program_guard,
    seed,
    temporaries,
    unique_name,
    unique_name_guard,
)
from fleetrun._param_attr import ParamAttr
from fleetrun._scope import Scope, ScopeVariable, global_scope, scope_guard
from fleetrun._variable import Parameter, Variable

__all__ = [
    "append", "create_parameter", "default_main_program", "default_startup_program", "global_scope",
    "make_parameter", "name_scope", "ParamAttr", "Parameter", "Program", "program_guard", "Scope",
    "scope_guard", "ScopeVariable", "seed", "temporaries", "unique_name", "unique_name_guard", "Variable",
]  # fmt: skip

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "core": "core",
        "io_utils": "static.io_utils",
        **_lazy.names("_saving", "save load"),
        **_lazy.names("_mode", "get_default_dtype set_default_dtype in_dynamic_mode"),
        **_lazy.names("_places", "CPUPlace CUDAPlace CUDAPinnedPlace"),
    },
)

"""paddle.framework: programs, variables and scopes as a script sees them, with all that computes on them loaded."""

from fleetrun import _lazy, _methods  # noqa: F401
from fleetrun._graph import (Program, append, create_parameter, default_main_program, default_startup_program,  # noqa: F401
                             make_parameter, name_scope, program_guard, seed, unique_name, unique_name_guard)
from fleetrun._scope import Scope, ScopeVariable, global_scope, scope_guard  # noqa: F401
from fleetrun._variable import Parameter, Variable  # noqa: F401

__getattr__, _ = _lazy.attach(__name__, "paddle.framework", {
    "core": "core",
    "io_utils": "static.io_utils",
    **_lazy.names("_saving", "save load"),
    **_lazy.names("_mode", "get_default_dtype set_default_dtype in_dynamic_mode"),
    **_lazy.names("_places", "CPUPlace CUDAPlace CUDAPinnedPlace"),
})

# Written by scripts/python-stubs.
"""paddle.framework: programs, variables and scopes as a script sees them, and all that computes on them."""
from fleetrun._graph import Program as Program
from fleetrun._graph import append as append
from fleetrun._graph import create_parameter as create_parameter
from fleetrun._graph import default_main_program as default_main_program
from fleetrun._graph import default_startup_program as default_startup_program
from fleetrun._graph import make_parameter as make_parameter
from fleetrun._graph import name_scope as name_scope
from fleetrun._graph import program_guard as program_guard
from fleetrun._graph import seed as seed
from fleetrun._graph import temporaries as temporaries
from fleetrun._graph import unique_name as unique_name
from fleetrun._graph import unique_name_guard as unique_name_guard
from fleetrun._param_attr import ParamAttr as ParamAttr
from fleetrun._scope import Scope as Scope
from fleetrun._scope import ScopeVariable as ScopeVariable
from fleetrun._scope import global_scope as global_scope
from fleetrun._scope import scope_guard as scope_guard
from fleetrun._variable import Parameter as Parameter
from fleetrun._variable import Variable as Variable
from fleetrun import core as core
from fleetrun.static import io_utils as io_utils
from fleetrun._saving import save as save
from fleetrun._saving import load as load
from fleetrun._mode import get_default_dtype as get_default_dtype
from fleetrun._mode import set_default_dtype as set_default_dtype
from fleetrun._mode import in_dynamic_mode as in_dynamic_mode
from fleetrun._places import CPUPlace as CPUPlace
from fleetrun._places import CUDAPlace as CUDAPlace
from fleetrun._places import CUDAPinnedPlace as CUDAPinnedPlace
__all__ = ['append', 'create_parameter', 'default_main_program', 'default_startup_program', 'global_scope', 'make_parameter', 'name_scope', 'ParamAttr', 'Parameter', 'Program', 'program_guard', 'Scope', 'scope_guard', 'ScopeVariable', 'seed', 'temporaries', 'unique_name', 'unique_name_guard', 'Variable', 'core', 'io_utils', 'save', 'load', 'get_default_dtype', 'set_default_dtype', 'in_dynamic_mode', 'CPUPlace', 'CUDAPlace', 'CUDAPinnedPlace']

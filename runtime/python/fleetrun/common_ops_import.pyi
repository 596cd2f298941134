# Written by scripts/python-stubs.
"""paddle.common_ops_import: what models that define operators of their own take from it, as far as programs
have it."""
from fleetrun.framework import Variable as Variable
from fleetrun.framework import default_main_program as default_main_program
from fleetrun._param_attr import ParamAttr as ParamAttr
from fleetrun._mode import in_dynamic_mode as in_dygraph_mode
from fleetrun._dtypes import name_of as convert_dtype
from fleetrun import core as core
__all__ = ['Variable', 'default_main_program', 'ParamAttr', 'in_dygraph_mode', 'convert_dtype', 'core', 'Variable', 'default_main_program', 'ParamAttr', 'in_dygraph_mode', 'convert_dtype', 'core']

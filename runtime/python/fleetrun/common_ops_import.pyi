# Written by scripts/python-stubs.
"""paddle.common_ops_import: what models that define operators of their own take from it, as far as programs
have it."""
from fleetrun.framework import Variable as Variable
from fleetrun.framework import default_main_program as default_main_program
from fleetrun._param_attr import ParamAttr as ParamAttr
from fleetrun._mode import in_dynamic_mode as in_dygraph_mode
from fleetrun._dtypes import name_of as convert_dtype
from fleetrun import core as core
from fleetrun.fluid.layer_helper import LayerHelper as LayerHelper
from fleetrun.fluid.data_feeder import check_type as check_type
from fleetrun.fluid.data_feeder import check_dtype as check_dtype
from fleetrun.fluid.data_feeder import check_variable_and_dtype as check_variable_and_dtype
__all__ = ['Variable', 'default_main_program', 'ParamAttr', 'in_dygraph_mode', 'convert_dtype', 'core', 'LayerHelper', 'check_type', 'check_dtype', 'check_variable_and_dtype', 'Variable', 'default_main_program', 'ParamAttr', 'in_dygraph_mode', 'convert_dtype', 'core', 'LayerHelper', 'check_type', 'check_dtype', 'check_variable_and_dtype']

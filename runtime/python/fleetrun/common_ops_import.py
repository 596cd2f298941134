"""paddle.common_ops_import: what models that define operators of their own take from it, as far as programs
have it."""

from fleetrun import _lazy

_TABLE = {
    **_lazy.names("framework", "Variable default_main_program"),
    "ParamAttr": "_param_attr:ParamAttr",
    "in_dygraph_mode": "_mode:in_dynamic_mode",
    "convert_dtype": "_dtypes:name_of",
    "core": "core",
    "LayerHelper": "fluid.layer_helper:LayerHelper",
    **_lazy.names("fluid.data_feeder", "check_type check_dtype check_variable_and_dtype"),
}
__all__ = list(_TABLE)  # for `from paddle.common_ops_import import *`
__getattr__, __dir__ = _lazy.attach(__name__, _TABLE)

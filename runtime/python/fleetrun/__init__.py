"""fleetrun: Paddle's names for parameter-server training, on fleetrun's own runtime.

`import fleetrun as paddle` and `import fleetrun.distributed.fleet as fleet` is all that changes in a Fleet
script. Importing this package loads neither the native module nor numpy; each name loads what it needs.
"""

from fleetrun import _lazy

__version__ = "0.1.0"

_TABLE = {
    "Error": "_error:Error",
    "amp": "amp",
    "base": "base",
    "batch": "io.readers:batch",
    "core": "core",
    "distributed": "distributed",
    "elastic": "elastic",
    "fluid": "fluid",
    "framework": "framework",
    "heartbeat": "_heartbeat:heartbeat",
    "incubate": "incubate",
    "io": "io",
    "metric": "metric",
    "nn": "nn",
    "onnx": "onnx",
    "optimizer": "optimizer",
    "regularizer": "regularizer",
    "static": "static",
    "utils": "utils",
    "Tensor": "framework:Variable",
    "create_parameter": "framework:create_parameter",
    "seed": "framework:seed",
    "ParamAttr": "_param_attr:ParamAttr",
    **_lazy.names("_places", "CPUPlace CUDAPlace CUDAPinnedPlace is_compiled_with_cuda is_compiled_with_xpu "
                  "is_compiled_with_rocm is_compiled_with_custom_device set_device get_device"),
    **_lazy.names("_mode", "enable_static disable_static in_dynamic_mode get_default_dtype set_default_dtype"),
    **_lazy.names("_dtypes", "float32 float64 int32 int64 bool"),
    **_lazy.names("tensor", "add subtract multiply divide maximum minimum pow scale tanh exp log log1p sqrt rsqrt "
                  "square abs reciprocal clip cast assign matmul bmm mean sum max add_n concat stack split reshape "
                  "flatten squeeze unsqueeze transpose slice full ones zeros full_like ones_like zeros_like equal "
                  "not_equal less_than less_equal greater_than greater_equal logical_and logical_or where"),
}

__getattr__, __dir__ = _lazy.attach(__name__, "paddle", _TABLE)

"""fleetrun: Paddle's names for parameter-server training, on fleetrun's own runtime.

`import fleetrun as paddle` and `import fleetrun.distributed.fleet as fleet` is all that changes in a Fleet
script. Importing this package loads neither the native module nor numpy; each name loads what it needs.
"""

from fleetrun import _finder as _finder
from fleetrun import _lazy, _more_names

__version__ = "0.1.0"

_TABLE = {
    "Error": "_error:Error",
    "amp": "amp",
    "base": "base",
    "batch": "io.readers:batch",
    "common_ops_import": "common_ops_import",
    "core": "core",
    "dataset": "dataset",
    "device": "device",
    "distributed": "distributed",
    "elastic": "elastic",
    "fluid": "fluid",
    "framework": "framework",
    "heartbeat": "_heartbeat:heartbeat",
    "incubate": "incubate",
    "inference": "inference",
    "geometric": "geometric",
    "io": "io",
    "jit": "jit",
    "linalg": "linalg",
    "metric": "metric",
    "nn": "nn",
    "onnx": "onnx",
    "optimizer": "optimizer",
    "profiler": "profiler",
    "reader": "reader",
    "regularizer": "regularizer",
    "static": "static",
    "utils": "utils",
    "version": "version",
    "Tensor": "framework:Variable",
    "create_parameter": "framework:create_parameter",
    "seed": "framework:seed",
    "ParamAttr": "_param_attr:ParamAttr",
    **_lazy.names(
        "_places",
        "CPUPlace CUDAPlace CUDAPinnedPlace is_compiled_with_cuda is_compiled_with_xpu "
        "is_compiled_with_rocm is_compiled_with_custom_device is_compiled_with_npu set_device get_device "
        "get_cuda_rng_state set_cuda_rng_state",
    ),
    **_lazy.names(
        "_mode",
        "enable_static disable_static in_dynamic_mode get_default_dtype set_default_dtype no_grad set_flags "
        "get_flags set_printoptions disable_signal_handler is_grad_enabled",
    ),
    **_lazy.names("_dtypes", "float32 float64 int32 int64 bool uint8 int8 int16 float16 bfloat16"),
    **_lazy.names("_dtypes", "complex64 complex128 iinfo finfo"),
    "dtype": "_dtypes:DType",
    **_lazy.names("_saving", "save load"),
    "tensor": "tensor",
    **_lazy.names(
        "tensor",
        "abs acos add add_n all any arange argmax argmin argsort asin assign atan bernoulli bitwise_and "
        "bitwise_not digamma erfinv lgamma "
        "bitwise_or bitwise_xor bmm broadcast_to cast ceil "
        "chunk clip concat cos cumsum diag divide dot einsum equal equal_all erf exp expand expand_as "
        "expm1 eye "
        "flatten flip floor floor_divide floor_mod full full_like gather gather_nd greater_equal "
        "greater_than "
        "index_select isfinite isinf isnan less_equal less_than linspace log log10 log1p log2 logical_and "
        "logical_not logical_or logical_xor logsumexp masked_select matmul max maximum mean meshgrid min "
        "minimum "
        "mm mod multinomial multiply nonzero norm normal not_equal numel ones ones_like outer pow prod rand "
        "randint randn randperm rank reciprocal remainder reshape roll round rsqrt scale scatter shape "
        "sign sin "
        "slice sort split sqrt square squeeze stack std strided_slice subtract sum t take_along_axis tan "
        "tanh "
        "tile to_tensor topk transpose tril triu unbind uniform unique unsqueeze unstack var where zeros "
        "zeros_like",
    ),
    **_lazy.names("_more_math", _more_names.MATH),
    **_lazy.names("_more_shapes", _more_names.SHAPES),
    **_lazy.names("_cumulative", _more_names.CUMULATIVE),
    **_lazy.names("_placing", _more_names.PLACING),
    **_lazy.names("_quantiles", _more_names.QUANTILES),
    **_lazy.names("_in_place", _more_names.IN_PLACE),
}

__getattr__, __dir__ = _lazy.attach(__name__, _TABLE)

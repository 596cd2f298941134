"""paddle.device: the CPU."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    _lazy.names(
        "_places",
        "XPUPlace get_all_custom_device_type get_all_device_type get_cudnn_version get_device "
        "is_compiled_with_cinn is_compiled_with_cuda is_compiled_with_custom_device "
        "is_compiled_with_distribute is_compiled_with_ipu is_compiled_with_rocm is_compiled_with_xpu "
        "set_device synchronize",
    )
    | {"get_available_device": "_places:get_all_device_type"}
    | {"get_available_custom_device": "_places:get_all_custom_device_type"},
)

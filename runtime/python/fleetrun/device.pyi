# Written by scripts/python-stubs.
"""paddle.device: the CPU."""
from fleetrun._places import XPUPlace as XPUPlace
from fleetrun._places import get_all_custom_device_type as get_all_custom_device_type
from fleetrun._places import get_all_device_type as get_all_device_type
from fleetrun._places import get_cudnn_version as get_cudnn_version
from fleetrun._places import get_device as get_device
from fleetrun._places import is_compiled_with_cinn as is_compiled_with_cinn
from fleetrun._places import is_compiled_with_cuda as is_compiled_with_cuda
from fleetrun._places import is_compiled_with_custom_device as is_compiled_with_custom_device
from fleetrun._places import is_compiled_with_distribute as is_compiled_with_distribute
from fleetrun._places import is_compiled_with_ipu as is_compiled_with_ipu
from fleetrun._places import is_compiled_with_rocm as is_compiled_with_rocm
from fleetrun._places import is_compiled_with_xpu as is_compiled_with_xpu
from fleetrun._places import set_device as set_device
from fleetrun._places import synchronize as synchronize
from fleetrun._places import get_all_device_type as get_available_device
from fleetrun._places import get_all_custom_device_type as get_available_custom_device
__all__ = ['XPUPlace', 'get_all_custom_device_type', 'get_all_device_type', 'get_cudnn_version', 'get_device', 'is_compiled_with_cinn', 'is_compiled_with_cuda', 'is_compiled_with_custom_device', 'is_compiled_with_distribute', 'is_compiled_with_ipu', 'is_compiled_with_rocm', 'is_compiled_with_xpu', 'set_device', 'synchronize', 'get_available_device', 'get_available_custom_device']

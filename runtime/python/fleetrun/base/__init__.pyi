# Written by scripts/python-stubs.
"""paddle.base: the older names that scripts still use."""
from fleetrun.distributed.dataset import DatasetFactory as DatasetFactory
from fleetrun._places import CPUPlace as CPUPlace
from fleetrun._places import CUDAPlace as CUDAPlace
from fleetrun.lod_tensor import LoDTensor as LoDTensor
from fleetrun.lod_tensor import create_lod_tensor as create_lod_tensor
from fleetrun.framework import Program as Program
from fleetrun.framework import default_main_program as default_main_program
from fleetrun.framework import default_startup_program as default_startup_program
from fleetrun.framework import program_guard as program_guard
from fleetrun.framework import global_scope as global_scope
from fleetrun import core as core
from fleetrun.fluid import io as io
from fleetrun.fluid import reader as reader
from fleetrun.static.executor import Executor as Executor
__all__ = ['DatasetFactory', 'CPUPlace', 'CUDAPlace', 'LoDTensor', 'create_lod_tensor', 'Program', 'default_main_program', 'default_startup_program', 'program_guard', 'global_scope', 'core', 'io', 'reader', 'Executor']

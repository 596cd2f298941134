# Written by scripts/python-stubs.
"""paddle.fluid: where Paddle 1.x had what a parameter-server script uses. Source: document 000."""
from fleetrun.distributed.dataset import DatasetFactory as DatasetFactory
from fleetrun.static.executor import Executor as Executor
from fleetrun._param_attr import ParamAttr as ParamAttr
from fleetrun.static import compiler as compiler
from fleetrun import core as core
from fleetrun.fluid import incubate as incubate
from fleetrun.fluid import io as io
from fleetrun.fluid import reader as reader
from fleetrun.nn import initializer as initializer
from fleetrun.fluid import layers as layers
from fleetrun import optimizer as optimizer
from fleetrun import regularizer as regularizer
from fleetrun._places import CPUPlace as CPUPlace
from fleetrun._places import CUDAPlace as CUDAPlace
from fleetrun.lod_tensor import LoDTensor as LoDTensor
from fleetrun.lod_tensor import create_lod_tensor as create_lod_tensor
from fleetrun.distributed.fleet._configs import BuildStrategy as BuildStrategy
from fleetrun.distributed.fleet._configs import ExecutionStrategy as ExecutionStrategy
from fleetrun.distributed.fleet._configs import DistributeTranspilerConfig as DistributeTranspilerConfig
from fleetrun.framework import Program as Program
from fleetrun.framework import default_main_program as default_main_program
from fleetrun.framework import default_startup_program as default_startup_program
from fleetrun.framework import program_guard as program_guard
from fleetrun.framework import global_scope as global_scope
from fleetrun.static.compiler import CompiledProgram as CompiledProgram
from fleetrun.static.parallel_executor import ParallelExecutor as ParallelExecutor
from fleetrun.static.inputs import data as data
__all__ = ['DatasetFactory', 'Executor', 'ParamAttr', 'compiler', 'core', 'incubate', 'io', 'reader', 'initializer', 'layers', 'optimizer', 'regularizer', 'CPUPlace', 'CUDAPlace', 'LoDTensor', 'create_lod_tensor', 'BuildStrategy', 'ExecutionStrategy', 'DistributeTranspilerConfig', 'Program', 'default_main_program', 'default_startup_program', 'program_guard', 'global_scope', 'CompiledProgram', 'ParallelExecutor', 'data']

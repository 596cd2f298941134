# Written by scripts/python-stubs.
"""paddle.static: programs, their inputs, and the executor. Source: documents 002 and 003."""
from fleetrun.framework import Program as Program
from fleetrun.framework import Variable as Variable
from fleetrun.framework import program_guard as program_guard
from fleetrun.framework import name_scope as name_scope
from fleetrun.framework import default_main_program as default_main_program
from fleetrun.framework import default_startup_program as default_startup_program
from fleetrun.framework import global_scope as global_scope
from fleetrun.framework import scope_guard as scope_guard
from fleetrun.framework import Scope as Scope
from fleetrun.framework import create_parameter as create_parameter
from fleetrun.static.inputs import data as data
from fleetrun.static.inputs import create_global_var as create_global_var
from fleetrun.static.inputs import cpu_places as cpu_places
from fleetrun.static.inputs import InputSpec as InputSpec
from fleetrun.static.metrics import auc as auc
from fleetrun.static.metrics import accuracy as accuracy
from fleetrun.static.metrics import ctr_metric_bundle as ctr_metric_bundle
from fleetrun.distributed.fleet._configs import BuildStrategy as BuildStrategy
from fleetrun.distributed.fleet._configs import ExecutionStrategy as ExecutionStrategy
from fleetrun.static.compiler import CompiledProgram as CompiledProgram
from fleetrun.static.parallel_executor import ParallelExecutor as ParallelExecutor
from fleetrun.static.io import save as save
from fleetrun.static.io import load as load
from fleetrun.static.io import save_inference_model as save_inference_model
from fleetrun.static.io import load_inference_model as load_inference_model
from fleetrun.static.io import save_vars as save_vars
from fleetrun.static.io import load_vars as load_vars
from fleetrun.static.io import load_program_state as load_program_state
from fleetrun.static.io import set_program_state as set_program_state
from fleetrun.static.executor import Executor as Executor
from fleetrun.static.printing import Print as Print
from fleetrun.static import io as io
from fleetrun.static import nn as nn
__all__ = ['Program', 'Variable', 'program_guard', 'name_scope', 'default_main_program', 'default_startup_program', 'global_scope', 'scope_guard', 'Scope', 'create_parameter', 'data', 'create_global_var', 'cpu_places', 'InputSpec', 'auc', 'accuracy', 'ctr_metric_bundle', 'BuildStrategy', 'ExecutionStrategy', 'CompiledProgram', 'ParallelExecutor', 'save', 'load', 'save_inference_model', 'load_inference_model', 'save_vars', 'load_vars', 'load_program_state', 'set_program_state', 'Executor', 'Print', 'io', 'nn']

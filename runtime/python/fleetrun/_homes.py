"""Modules that Paddle has and that are another one here, found by `import fleetrun.X` and `import paddle.X`.

`fleetrun.fluid.layers.nn` is `fleetrun.fluid.layers`, under both names. What lies above such a module and is
none itself (`fleetrun.fluid.incubate`) is a module of its children's names. _finder.py finds them.
"""

import os

# The module here, and those of Paddle that have its names or a part of them.
_TEXT = """
core: base.core fluid.core framework.core
framework: fluid.framework base.framework static.framework
static.executor: fluid.executor base.executor
static.compiler: fluid.compiler base.compiler
static.nn: static.nn.common static.nn.metric static.nn.loss
static.control_flow: static.nn.control_flow
static.sequence_lod: static.nn.sequence_lod fluid.layers.sequence_lod
static.inputs: static.input
static.amp: static.amp.bf16 static.amp.decorator static.amp.fp16_lists static.amp.fp16_utils
static.amp: fluid.contrib.mixed_precision fluid.contrib.mixed_precision.decorator
static.amp: fluid.contrib.mixed_precision.fp16_lists fluid.contrib.mixed_precision.bf16
static.parallel_executor: fluid.parallel_executor
tensor: tensor.math tensor.manipulation tensor.creation tensor.linalg tensor.logic tensor.search
tensor: tensor.stat tensor.random tensor.attribute tensor.ops tensor.tensor tensor.layer_function_generator
nn: nn.layer nn.layer.common nn.layer.activation nn.layer.conv nn.layer.container nn.layer.layers
nn: nn.layer.loss nn.layer.norm nn.layer.pooling nn.layer.rnn nn.layer.distance
nn: nn.common nn.conv nn.loss nn.norm nn.rnn
nn.transformer: nn.layer.transformer
nn.functional: nn.functional.common nn.functional.activation nn.functional.conv nn.functional.loss
nn.functional: nn.functional.norm nn.functional.pooling nn.functional.input nn.functional.extension
nn.initializer: nn.initializer.constant nn.initializer.normal nn.initializer.uniform nn.initializer.xavier
nn.initializer: nn.initializer.kaiming nn.initializer.assign nn.initializer.initializer
optimizer.optimizers: optimizer.optimizer optimizer.sgd optimizer.momentum optimizer.adagrad
optimizer.optimizers: optimizer.adam optimizer.adamw optimizer.rmsprop
utils.unique_name: fluid.unique_name base.unique_name
utils.profiler: fluid.profiler
lod_tensor: fluid.lod_tensor base.lod_tensor
_param_attr: fluid.param_attr base.param_attr
fluid.data_feeder: base.data_feeder
fluid.layers: fluid.layers.nn fluid.layers.tensor fluid.layers.ops fluid.layers.io fluid.layers.loss
fluid._rnn: fluid.layers.rnn
fluid.layers: fluid.layers.control_flow fluid.layers.metric_op fluid.layers.device
fluid.layers: base.layers
fluid.layers: fluid.layers.collective base.layers.ops base.layers.io
fluid.schedules: fluid.layers.learning_rate_scheduler
fluid.io: base.io
fluid.reader: base.reader
fluid.initializer: base.initializer
fluid.backward: base.backward
fluid.layer_helper: base.layer_helper fluid.layer_helper_base base.layer_helper_base
fluid.wrapped_decorator: base.wrapped_decorator
fluid.data_feed_desc: base.data_feed_desc
distributed.dataset: fluid.dataset base.dataset distributed.fleet.dataset distributed.fleet.dataset.dataset
distributed.entries: distributed.entry_attr
distributed.collectives: distributed.collective
distributed.transpiler: fluid.transpiler fluid.transpiler.distribute_transpiler
distributed.transpiler: fluid.transpiler.geo_sgd_transpiler fluid.transpiler.memory_optimization_transpiler
distributed.transpiler: distributed.transpiler.distribute_transpiler fluid.transpiler.ps_dispatcher
distributed.fleet.data_generator: fluid.incubate.data_generator incubate.data_generator
distributed.fleet.metrics: distributed.fleet.metrics.metric
distributed.fleet._util: distributed.fleet.base.util_factory
distributed.fleet._strategy: distributed.fleet.base.distributed_strategy
distributed.fleet._fleet: distributed.fleet.base.fleet_base
distributed.fleet.log_util: distributed.fleet.utils.log_util
distributed.fleet.utils: fluid.contrib.utils
distributed.fleet.utils.fs: fluid.contrib.utils.hdfs_utils
io.readers: fluid.contrib.reader
incubate.layers: fluid.contrib.layers fluid.contrib.layers.nn fluid.contrib.layers.metric_op
fluid._memory_usage: fluid.contrib.model_stat fluid.contrib.memory_usage_calc
fluid.dygraph: base.dygraph base.dygraph.base fluid.dygraph.base fluid.dygraph.nn fluid.dygraph.layers
fluid.dygraph: fluid.dygraph.parallel fluid.dygraph.parallel_helper fluid.dygraph.learning_rate_scheduler
fluid.dygraph: fluid.dygraph.container fluid.dygraph.layer_object_helper fluid.dygraph.checkpoint
fluid.dygraph: fluid.dygraph.jit fluid.dygraph.tracer fluid.dygraph.backward_strategy fluid.dygraph.profiler
fluid.slim: fluid.contrib.slim fluid.contrib.slim.core fluid.contrib.slim.graph fluid.contrib.slim.nas
fluid.slim: fluid.contrib.slim.quantization fluid.contrib.slim.quantization.quantization_pass
fluid.slim: fluid.contrib.slim.quantization.quantize_transpiler_v2 fluid.contrib.slim.distillation
fluid._stacked: fluid.contrib.layers.rnn_impl
fluid._distributions: fluid.layers.distributions
utils.nest: fluid.layers.utils utils.layers_utils
reader: reader.decorator
io: fluid.dataloader fluid.dataloader.batch_sampler fluid.dataloader.dataset
io: io.dataloader io.dataloader.batch_sampler io.dataloader.dataset io.dataloader.sampler io.reader
fluid: fluid.input
fluid.log_helper: base.log_helper static.log_helper
optimizer.optimizers: optimizer.adadelta optimizer.adamax optimizer.lamb
static.amp: fluid.contrib.mixed_precision.fp16_utils
metric: metric.metrics
nn.functional: nn.functional.distance
nn.initializer: nn.initializer.dirac nn.initializer.orthogonal
nn.decoder: nn.decode
regularizer: base.regularizer
nn.clip: base.clip
fluid._transpiled: fluid.transpiler.details fluid.transpiler.details.program_utils
distributed.fleet.older: fluid.transpiler.distribute_transpiler.distributed_strategy
_messages: fluid.proto fluid.proto.framework_pb2 base.proto base.proto.framework_pb2
_messages: distributed.fleet.proto distributed.fleet.proto.distributed_strategy_pb2
distributed.dataset._index_messages: distributed.fleet.proto.index_dataset_pb2
distributed.dataset.tree_index: distributed.fleet.dataset.index_dataset
"""

_FOLDER = os.path.dirname(os.path.abspath(__file__))

# What stands in each of Paddle's folders "fleet" of 1.x, and where they stand.
_FLEETS = ("fluid.incubate.fleet", "incubate.distributed.fleet", "incubate.fleet")
_IN_FLEET = {
    "parameter_server.distribute_transpiler": "distributed.fleet.older",
    "parameter_server.distribute_transpiler.distributed_strategy": "distributed.fleet.older",
    "parameter_server.distribute_transpiler.distributed_strategy_factory": "distributed.fleet.older",
    "parameter_server.mode": "distributed.fleet.older_base",
    "parameter_server.pslib": "distributed.fleet.older_pslib",
    "collective": "distributed.fleet.older_collective",
    "base": "distributed.fleet.older_base",
    "base.fleet_base": "distributed.fleet.older_base",
    "base.mode": "distributed.fleet.older_base",
    "base.role_maker": "distributed.fleet.older_roles",
    "role_maker": "distributed.fleet.older_roles",
    "utils.fleet_util": "distributed.fleet.older_util",
    "fleet_util": "distributed.fleet.older_util",
    "utils.hdfs": "distributed.fleet.utils.fs",
    "utils.fs": "distributed.fleet.utils.fs",
}


def _homes() -> "dict[str, str]":
    """{module of Paddle: module here}, without the package's name; "" for one of its children's names."""
    homes = {f"{fleet}.{name}": home for fleet in _FLEETS for name, home in _IN_FLEET.items()}
    for line in _TEXT.split("\n"):
        home, _, names = line.partition(":")
        homes.update(dict.fromkeys(names.split(), home))
    for name in list(homes):
        parts = name.split(".")
        for count in range(1, len(parts)):
            above = os.path.join(_FOLDER, *parts[:count])
            if not os.path.exists(above + ".py") and not os.path.exists(os.path.join(above, "__init__.py")):
                homes.setdefault(".".join(parts[:count]), "")
    return homes


HOMES = _homes()
CHILDREN: "dict[str, dict[str, str]]" = {}
for _name in HOMES:
    _parent, _, _last = _name.rpartition(".")
    CHILDREN.setdefault(_parent, {})[_last] = _name

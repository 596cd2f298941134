"""paddle.fluid: where Paddle 1.x had what a parameter-server script uses. Source: document 000."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "DatasetFactory": "distributed.dataset:DatasetFactory",
        "Executor": "static.executor:Executor",
        "ParamAttr": "_param_attr:ParamAttr",
        "compiler": "static.compiler",
        "core": "core",
        "incubate": "fluid.incubate",
        "io": "fluid.io",
        "reader": "fluid.reader",
        "initializer": "nn.initializer",
        "layers": "fluid.layers",
        "optimizer": "optimizer",
        "regularizer": "regularizer",
        **_lazy.names("_places", "CPUPlace CUDAPlace"),
        **_lazy.names("lod_tensor", "LoDTensor create_lod_tensor"),
        **_lazy.names(
            "distributed.fleet._configs", "BuildStrategy ExecutionStrategy DistributeTranspilerConfig"
        ),
        **_lazy.names(
            "framework", "Program default_main_program default_startup_program program_guard global_scope"
        ),
        "CompiledProgram": "static.compiler:CompiledProgram",
        "ParallelExecutor": "static.parallel_executor:ParallelExecutor",
        **_lazy.names("static.inputs", "data"),
    },
)

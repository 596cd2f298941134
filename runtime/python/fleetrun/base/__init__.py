"""paddle.base: the older names that scripts still use."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "DatasetFactory": "distributed.dataset:DatasetFactory",
        **_lazy.names("_places", "CPUPlace CUDAPlace"),
        **_lazy.names("lod_tensor", "LoDTensor create_lod_tensor"),
        **_lazy.names(
            "framework", "Program default_main_program default_startup_program program_guard global_scope"
        ),
        "core": "core",
        "io": "fluid.io",
        "reader": "fluid.reader",
        "Executor": "static.executor:Executor",
    },
)

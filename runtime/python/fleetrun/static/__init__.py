"""paddle.static: programs, their inputs, and the executor. Source: documents 002 and 003."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.names(
            "framework",
            "Program Variable program_guard name_scope default_main_program "
            "default_startup_program global_scope scope_guard Scope create_parameter WeightNormParamAttr",
        ),
        **_lazy.names("_places", "cpu_places cuda_places xpu_places device_guard"),
        **_lazy.names("fluid.backward", "append_backward gradients"),
        **_lazy.names("static.inputs", "data create_global_var InputSpec"),
        **_lazy.names("static.metrics", "auc accuracy ctr_metric_bundle"),
        **_lazy.names("distributed.fleet._configs", "BuildStrategy ExecutionStrategy"),
        "CompiledProgram": "static.compiler:CompiledProgram",
        "ParallelExecutor": "static.parallel_executor:ParallelExecutor",
        **_lazy.names(
            "static.io",
            "save load save_inference_model load_inference_model save_vars load_vars load_program_state "
            "set_program_state",
        ),
        **_lazy.names(
            "static.serial",
            "normalize_program serialize_program serialize_persistables deserialize_program "
            "deserialize_persistables save_to_file load_from_file",
        ),
        "ExponentialMovingAverage": "static.averages:ExponentialMovingAverage",
        "Executor": "static.executor:Executor",
        "Print": "static.printing:Print",
        "py_func": "static.calls:py_func",
        "amp": "static.amp",
        "io": "static.io",
        "nn": "static.nn",
    },
)

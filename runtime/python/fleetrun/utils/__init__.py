"""paddle.utils: what scripts that build programs use of it."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "unique_name": "utils.unique_name",
        "profiler": "utils.profiler",
        "download": "utils.download",
        "plot": "utils.plot",
        "install_check": "utils.install_check",
        "run_check": "utils.install_check:run_check",
        "require_version": "_places:require_version",
        **_lazy.names("utils.nest", "map_structure flatten pack_sequence_as"),
        **_lazy.names("utils.helpers", "deprecated try_import"),
    },
)

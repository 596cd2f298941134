"""paddle.utils.unique_name: how names are numbered."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "generate": "framework:unique_name",
        "guard": "framework:unique_name_guard",
        "switch": "framework:switch_unique_name",
        "UniqueNameGenerator": "framework:UniqueNameGenerator",
    },
)

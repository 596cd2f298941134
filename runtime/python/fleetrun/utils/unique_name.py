"""paddle.utils.unique_name: how names are numbered."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {"guard": "framework:unique_name_guard", "generate": "framework:unique_name"},
)

# Written by scripts/python-stubs.
"""paddle.utils.unique_name: how names are numbered."""
from fleetrun.framework import unique_name_guard as guard
from fleetrun.framework import unique_name as generate
__all__ = ['guard', 'generate']

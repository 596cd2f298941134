# Written by scripts/python-stubs.
"""paddle.utils.unique_name: how names are numbered."""
from fleetrun.framework import unique_name as generate
from fleetrun.framework import unique_name_guard as guard
from fleetrun.framework import switch_unique_name as switch
from fleetrun.framework import UniqueNameGenerator as UniqueNameGenerator
__all__ = ['generate', 'guard', 'switch', 'UniqueNameGenerator']

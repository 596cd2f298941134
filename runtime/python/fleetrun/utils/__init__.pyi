# Written by scripts/python-stubs.
"""paddle.utils: what scripts that build programs use of it."""
from fleetrun.utils import unique_name as unique_name
from fleetrun.utils import profiler as profiler
from fleetrun.utils import download as download
from fleetrun.utils import plot as plot
from fleetrun.utils import install_check as install_check
from fleetrun.utils.install_check import run_check as run_check
from fleetrun._places import require_version as require_version
from fleetrun.utils.nest import map_structure as map_structure
from fleetrun.utils.nest import flatten as flatten
from fleetrun.utils.nest import pack_sequence_as as pack_sequence_as
from fleetrun.utils.helpers import deprecated as deprecated
from fleetrun.utils.helpers import try_import as try_import
__all__ = ['unique_name', 'profiler', 'download', 'plot', 'install_check', 'run_check', 'require_version', 'map_structure', 'flatten', 'pack_sequence_as', 'deprecated', 'try_import']

# Written by scripts/python-stubs.
"""paddle.distributed.fleet.utils: file systems."""
from fleetrun.distributed.fleet.utils import fs as fs
from fleetrun.distributed.fleet.utils.fs import LocalFS as LocalFS
from fleetrun.distributed.fleet.utils.fs import HDFSClient as HDFSClient
__all__ = ['fs', 'LocalFS', 'HDFSClient']

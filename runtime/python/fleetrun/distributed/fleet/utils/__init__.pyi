# Written by scripts/python-stubs.
"""paddle.distributed.fleet.utils: file systems, and inference with the tables of servers."""
from fleetrun.distributed.fleet.utils import fs as fs
from fleetrun.distributed.fleet.utils import ps_util as ps_util
from fleetrun.distributed.fleet.utils.ps_util import DistributedInfer as DistributedInfer
from fleetrun.distributed.fleet.utils.fs import LocalFS as LocalFS
from fleetrun.distributed.fleet.utils.fs import HDFSClient as HDFSClient
__all__ = ['fs', 'ps_util', 'DistributedInfer', 'LocalFS', 'HDFSClient']

# Written by scripts/python-stubs.
"""paddle.incubate: names and modules of Paddle that lie elsewhere here (_homes.py)."""
from fleetrun.incubate import layers as layers
from fleetrun.incubate import optimizer as optimizer
from fleetrun.static.averages import LookAhead as LookAhead
from fleetrun.static.averages import ModelAverage as ModelAverage
from fleetrun.geometric import segment_max as segment_max
from fleetrun.geometric import segment_mean as segment_mean
from fleetrun.geometric import segment_min as segment_min
from fleetrun.geometric import segment_sum as segment_sum
from fleetrun.nn._masked import identity_loss as identity_loss
from fleetrun.nn._masked import softmax_mask_fuse as softmax_mask_fuse
from fleetrun.nn._masked import softmax_mask_fuse_upper_triangle as softmax_mask_fuse_upper_triangle
from fleetrun.geometric import graph_send_recv as graph_send_recv
__all__ = ['layers', 'optimizer', 'LookAhead', 'ModelAverage', 'segment_max', 'segment_mean', 'segment_min', 'segment_sum', 'identity_loss', 'softmax_mask_fuse', 'softmax_mask_fuse_upper_triangle', 'graph_send_recv']

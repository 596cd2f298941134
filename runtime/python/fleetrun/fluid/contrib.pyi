# Written by scripts/python-stubs.
"""paddle.fluid.contrib: layers of ranking models of Paddle 1.x (incubate/layers.py), and modules."""
from fleetrun.incubate.layers import fused_embedding_seq_pool as fused_embedding_seq_pool
from fleetrun.incubate.layers import partial_concat as partial_concat
from fleetrun.incubate.layers import partial_sum as partial_sum
from fleetrun.incubate.layers import shuffle_batch as shuffle_batch
from fleetrun.fluid._stacked import basic_gru as basic_gru
from fleetrun.fluid._stacked import basic_lstm as basic_lstm
from fleetrun.fluid._stacked import BasicGRUUnit as BasicGRUUnit
from fleetrun.fluid._stacked import BasicLSTMUnit as BasicLSTMUnit
from fleetrun.incubate.trees import tdm_child as tdm_child
from fleetrun.incubate.trees import tdm_sampler as tdm_sampler
from fleetrun.fluid._memory_usage import memory_usage as memory_usage
from fleetrun.static.metrics import ctr_metric_bundle as ctr_metric_bundle
from fleetrun.static.nn import sparse_embedding as sparse_embedding
from fleetrun.static import amp as mixed_precision
__all__ = ['fused_embedding_seq_pool', 'partial_concat', 'partial_sum', 'shuffle_batch', 'basic_gru', 'basic_lstm', 'BasicGRUUnit', 'BasicLSTMUnit', 'tdm_child', 'tdm_sampler', 'memory_usage', 'ctr_metric_bundle', 'sparse_embedding', 'mixed_precision']

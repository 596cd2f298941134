"""paddle.fluid.contrib: layers of ranking models of Paddle 1.x (incubate/layers.py), and modules."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.names("incubate.layers", "fused_embedding_seq_pool partial_concat partial_sum shuffle_batch"),
        **_lazy.names("fluid._stacked", "basic_gru basic_lstm BasicGRUUnit BasicLSTMUnit"),
        **_lazy.names("incubate.trees", "tdm_child tdm_sampler"),
        "memory_usage": "fluid._memory_usage:memory_usage",
        "ctr_metric_bundle": "static.metrics:ctr_metric_bundle",
        "sparse_embedding": "static.nn:sparse_embedding",
        "mixed_precision": "static.amp",
    },
)

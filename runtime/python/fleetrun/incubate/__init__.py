"""paddle.incubate: names and modules of Paddle that lie elsewhere here (_homes.py)."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "layers": "incubate.layers",
        "optimizer": "incubate.optimizer",
        **_lazy.names("static.averages", "LookAhead ModelAverage"),
        **_lazy.names("geometric", "segment_max segment_mean segment_min segment_sum"),
        **_lazy.names("nn._masked", "identity_loss softmax_mask_fuse softmax_mask_fuse_upper_triangle"),
        "graph_send_recv": "geometric:graph_send_recv",
    },
)

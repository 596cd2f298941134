"""paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler: fleet and its strategies.

Source: document 000.
"""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "fleet": "distributed.fleet._transpiler:fleet",
        "distributed_strategy": __name__[len("fleetrun.") :] + ".distributed_strategy",
        **_lazy.OLDER_STRATEGIES,
    },
)

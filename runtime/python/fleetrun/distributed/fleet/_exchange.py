"""How trainers and servers exchange values and gradients: what every kind of strategy comes down to."""

MODES = ("sync", "half_async", "async", "geo")


class Exchange:
    """mode: one of MODES. The others, where the mode has a use for them:

    geo_steps: geo; batches of a trainer between two exchanges of differences.
    merged: async; waiting gradients of a trainer's threads that are added up into one push, at most.
    waiting: async; pushes of a trainer that may wait to be sent before its threads do.
    pull_every: async, half_async; pushes of a thread between two pulls of the dense parameters.
    max_ahead: async, half_async; steps that a thread may be ahead of the slowest thread of the job, 0 for
    any.
    min_block: dense parameters are split over servers into blocks of at least so many values; 0: as evenly as
    it goes, None: never split.
    """

    def __init__(
        self, mode="async", geo_steps=400, merged=1, waiting=1, pull_every=1, min_block=0, max_ahead=0
    ):
        self.mode = mode
        self.geo_steps = geo_steps
        self.merged = merged
        self.waiting = waiting
        self.pull_every = pull_every
        self.min_block = min_block
        self.max_ahead = max_ahead

    def for_client(self):
        """What the native client is told besides the mode."""
        return [self.geo_steps, self.merged, self.waiting, self.max_ahead]

    def __eq__(self, other):
        return isinstance(other, Exchange) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        return f"Exchange({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

"""The older strategies, where Paddle 1.x had them too."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(__name__, _lazy.OLDER_STRATEGIES)

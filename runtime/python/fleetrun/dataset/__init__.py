"""paddle.dataset: readers of well-known data sets, from files that are there; nothing is downloaded."""

from fleetrun import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        name: "dataset." + name
        for name in (
            "cifar",
            "common",
            "conll05",
            "flowers",
            "image",
            "imdb",
            "imikolov",
            "mnist",
            "movielens",
            "uci_housing",
            "wmt14",
            "wmt16",
        )
    },
)

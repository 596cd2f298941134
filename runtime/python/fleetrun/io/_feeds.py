"""What all loaders do with places, and with batches on their way to Executor.run."""

from fleetrun import _places as places_module
from fleetrun._arguments import as_list
from fleetrun._error import Error
from fleetrun.io import _collate


def check_places(places):
    """Takes None, a place, or a list of some. Returns how many. Throws: Error(config)."""
    if not isinstance(places, (list, tuple)):
        places = [places]
    if not places:
        raise Error("config", "DataLoader: 0 places", "give it one, or one for each replica of a program")
    for place in places:
        places_module.check(place)
    return len(places)


def feed_names(feed_list):
    """The names of variables, or of names."""
    return [getattr(variable, "name", variable) for variable in feed_list]


def named(names, arrays):
    """[{name: array}] of one batch. Throws: Error(data) when their numbers differ."""
    arrays = as_list(arrays)
    if len(arrays) != len(names):
        raise Error(
            "data",
            f"a batch has {len(arrays)} parts, feed_list has {len(names)}: {', '.join(names)}",
            "let each example have a part for each variable, in the order of feed_list",
        )
    return [dict(zip(names, arrays))]


def torch_or_numpy(owner, to):
    """What makes a batch's arrays what `to` says. Throws: Error(config), ImportError without PyTorch."""
    if to == "numpy":
        return lambda batch: batch
    if to != "torch":
        raise Error("config", f"{owner}: to={to!r}", 'it is "numpy" or "torch"')
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f'{owner}(to="torch") needs PyTorch, which is not installed: python -m pip install torch'
        ) from error
    return lambda batch: _collate.convert(batch, torch.from_numpy)

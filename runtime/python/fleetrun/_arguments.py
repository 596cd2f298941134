"""Arguments of Paddle's signatures that fleetrun accepts at their default value only."""

from fleetrun._error import Error


def refuse(function, **arguments):
    """Each argument is (given, default). Throws: Error(config) naming the first one that is not its default."""
    for name, (given, default) in arguments.items():
        if given is default or (isinstance(given, (bool, int, float, str, list, tuple)) and given == default):
            continue
        raise Error("config", f"{function}({name}={given!r}) is not supported",
                    f"leave {name} at its default, {default!r}")

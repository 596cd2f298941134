# Written by scripts/python-stubs.
"""MultiSlot text of samples, without the engine: for pipe commands."""



def join_numbers(samples: list, start: int, proto: list) -> tuple:
    """
    (text, place): the lines of samples from `start` on, up to the first that Python has to look at itself. proto: [(name, type)] of the slots.
    """

def join_strings(samples: list, start: int) -> tuple:
    """The same for values that are text already."""

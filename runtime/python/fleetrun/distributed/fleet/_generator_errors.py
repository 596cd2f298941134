"""Exceptions of data generators, in one process or in several: Paddle's, with a note where their text leaves
something open."""

from fleetrun._notes import add_note


def noted(error, note):
    """`error` with the note below its text."""
    add_note(error, note)
    return error


def other_name(expected, name):
    """The text for a sample whose slot has another name."""
    return f"the field name of two given line are not match: require<{expected}>, get<{name}>."

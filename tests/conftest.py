"""What holds for all tests: how they are spread over processes, and the signals that those begin with.

Tests that share what their file makes once go to one process; the others go where there is room.
"""

import signal

import pytest

# Programs inherit what is ignored (nohup, a shell's `&`), and tests send these to programs that they start.
for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def shares(item):
    """Whether this test uses a fixture that is made once for its file."""
    return any(
        definition.scope == "module"
        for definitions in item._fixtureinfo.name2fixturedefs.values()
        for definition in definitions
    )


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the marks
def pytest_collection_modifyitems(items):
    for item in items:
        if shares(item):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))

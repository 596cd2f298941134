"""What holds for all tests: how they are spread over processes, the signals that those begin with, ports.

Tests that share what their file makes once go to one process; the others go where there is room.
"""

import pathlib
import random
import signal
import socket
import sys

import pytest

# It holds what tests import; pytest does not look there by itself.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))

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


# Below them fleetrun leases none by itself, and the kernel gives none to connections.
PORTS = range(8_000, 10_000)


class Leases:
    """leases(n): n free ports of 127.0.0.1 that no other test gets until this one has ended."""

    def __init__(self):
        self.held = []

    def __call__(self, count):
        numbers = []
        for port in random.sample(PORTS, len(PORTS)):
            if self._take(port):
                numbers.append(port)
            if len(numbers) == count:
                return numbers
        raise AssertionError(f"there are no {count} free ports")

    def in_a_row(self, count):
        """The first of `count` that follow each other."""
        for port in random.sample(PORTS, len(PORTS)):
            if all(self._take(port + i) for i in range(count)):
                return port
        raise AssertionError(f"there are no {count} free ports in a row")

    def _take(self, port):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0fleetrun-test-port-{port}")
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            claim.close()
            return False
        self.held.append(claim)
        return True


@pytest.fixture
def ports():
    leases = Leases()
    yield leases
    for claim in leases.held:
        claim.close()

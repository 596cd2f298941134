"""Tests that share what their file makes once go to one process; the others go where there is room."""

import pytest


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

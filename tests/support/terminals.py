"""Pseudo-terminals, where there are any (a bare chroot has none)."""

import pty

import pytest


def fork():
    """As pty.fork()."""
    try:
        return pty.fork()
    except OSError as error:
        pytest.skip(f"no pseudo-terminals here: {error}")

# Written by scripts/python-stubs.
"""paddle.fluid.install_check."""
from fleetrun.utils.install_check import run_check as run_check
__all__ = ['run_check']

# Written by scripts/python-stubs.
"""paddle.fluid.reader: loaders under their older names."""
from fleetrun.io.loader import DataLoader as DataLoader
from fleetrun.io.generator_loader import PyReader as PyReader
__all__ = ['DataLoader', 'PyReader']

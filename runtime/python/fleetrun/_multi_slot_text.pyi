# Written by scripts/python-stubs.
"""None"""
import datetime
import typing
from typing import Any
import numpy
def join_numbers(arg0: list, arg1: int, arg2: list) -> tuple: ...
def join_strings(arg0: list, arg1: int) -> tuple: ...

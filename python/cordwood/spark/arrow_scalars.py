"""Conversion of Python values to Arrow scalars without importing pandas.

`pa.scalar`, and every function that takes a Python value, imports pandas to check for pandas types. That would cost
every worker a third of a second and 40 MB before its first row.
"""

import struct
import sys

import pyarrow as pa

__all__ = ["scalar"]


def scalar(value: str | int, type_: pa.DataType) -> pa.Scalar:
    """Build a string, or an integer of a type that is stored as an integer (such as a timestamp), from its bytes."""
    if isinstance(value, str):
        content = value.encode()
        buffers = [struct.pack("=ii", 0, len(content)), content]
    else:
        buffers = [value.to_bytes(type_.byte_width, sys.byteorder, signed=True)]
    return pa.Array.from_buffers(type_, 1, [None, *map(pa.py_buffer, buffers)])[0]

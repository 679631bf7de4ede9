"""Values of Python as Arrow's, without pandas.

`pa.scalar`, and all that takes a value of Python's, imports pandas to see whether the value is one of its own. That
would take every worker a third of a second, and 40 MB, before its first row.
"""

import struct
import sys

import pyarrow as pa

__all__ = ["scalar"]


def scalar(value: str | int, type_: pa.DataType) -> pa.Scalar:
    """Give a text, or a number of a type that is one in memory (as a time is), by its bytes."""
    if isinstance(value, str):
        content = value.encode()
        buffers = [struct.pack("=ii", 0, len(content)), content]
    else:
        buffers = [value.to_bytes(type_.byte_width, sys.byteorder, signed=True)]
    return pa.Array.from_buffers(type_, 1, [None, *map(pa.py_buffer, buffers)])[0]

"""Rows of results as JSON lines."""

import base64
import json
from collections.abc import Iterable
from typing import Any, BinaryIO

from cordwood.cli.terminal import escape_json

__all__ = ["Row", "write_jsonl"]

Row = dict[str, Any]


def write_jsonl(rows: Iterable[Row], out: BinaryIO) -> None:
    """Write one object per line. Bytes are text if they are UTF-8, otherwise `{"base64": …}`, as in `cordwood cat`."""
    for row in rows:
        line = json.dumps({name: _as_json(value) for name, value in row.items()}, ensure_ascii=False)
        out.write(escape_json(line).encode() + b"\n")


def _as_json(value: object) -> object:
    match value:
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return {"base64": base64.b64encode(value).decode()}
        case list() | tuple():
            return [_as_json(item) for item in value]
        case _:
            return value

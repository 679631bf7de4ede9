"""A slow writer of JSON lines and CSV, as the oracle of `cordwood cat`: Python's `json` and pyarrow's `CSVWriter`.

The rows come from `Scan.to_arrow`; the text is made without code of the library.
"""

from __future__ import annotations

import base64
import io
import json
import re
from typing import Any, Literal, get_args

import pyarrow as pa
from pyarrow import csv

import cordwood as cw

TextFormat = Literal["jsonl", "csv", "terminal_csv"]
FORMATS: tuple[TextFormat, ...] = get_args(TextFormat)

MAX_ARROW_TIME = 971_890_963_199_999
"""The last millisecond that pyarrow formats: the end of the year 32767."""

UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def as_json(value: object) -> object:
    match value:
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return {"base64": base64.b64encode(value).decode()}
        case list() | tuple():
            return [as_json(item) for item in value]
        case _:
            return value


def json_text(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return UNSAFE.sub(
        lambda found: f"\\u{ord(found[0]):04x}" if found[0] <= "\x9f" else json.dumps(found[0])[1:-1], text
    )


def terminal_text(text: str) -> str:
    def escape(found: re.Match[str]) -> str:
        point = ord(found[0])
        return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"

    return UNSAFE.sub(escape, text)


def values(name: str, column: pa.Array) -> list[Any]:
    if name == "timestamp":
        return list(column.cast("int64").to_pylist())
    if name == "headers":
        return [[(pair["key"], pair["value"]) for pair in pairs or ()] for pairs in column.to_pylist()]
    return list(column.to_pylist())


def jsonl(table: pa.Table) -> bytes:
    columns = {name: values(name, table[name]) for name in table.schema.names}
    lines = []
    for row in range(table.num_rows):
        cells = {name: as_json(column[row]) for name, column in columns.items()}
        lines.append(json_text(cells) + "\n")
    return "".join(lines).encode()


def csv_lines(table: pa.Table, *, is_terminal: bool) -> bytes:
    def text(value: bytes | str | None) -> str | None:
        if isinstance(value, bytes):
            try:
                value = value.decode()
            except UnicodeDecodeError:
                value = "base64:" + base64.b64encode(value).decode()
        return terminal_text(value) if is_terminal and value is not None else value

    def cells(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        if name in {"headers", "error"}:
            texts = [json_text(as_json(value)) if value else None for value in values(name, column)]
            return pa.chunked_array([pa.array(texts, pa.string())])
        if name in {"key", "value", "topic", "codec"}:
            return pa.chunked_array([pa.array([text(value) for value in column.to_pylist()], pa.string())])
        return column

    converted = pa.table({name: cells(name, table[name]) for name in table.schema.names})
    out = io.BytesIO()
    with csv.CSVWriter(out, converted.schema) as writer:
        writer.write_table(converted)
    return out.getvalue()


def lines(table: pa.Table, text_format: TextFormat) -> bytes:
    return jsonl(table) if text_format == "jsonl" else csv_lines(table, is_terminal=text_format == "terminal_csv")


def joined(scan: cw.Scan, text_format: TextFormat) -> tuple[bytes, int]:
    """The text of all blocks of a scan, each of which is whole lines, and the number of rows."""
    texts, rows = [], 0
    for text, count in scan._lines(text_format):  # noqa: SLF001  (it is what is tested)
        assert text.endswith(b"\n")
        texts.append(text)
        rows += count
    return b"".join(texts), rows

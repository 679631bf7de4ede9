"""Writers of records as JSON lines, CSV, Arrow or Parquet."""

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from cordwood import Record
from cordwood.cli.exit_codes import UsageError
from cordwood.cli.terminal import escape, escape_json

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "DAMAGE_COLUMN",
    "OTHER_COLUMNS",
    "RECORD_COLUMNS",
    "STREAM_SUFFIX",
    "Format",
    "Row",
    "format_of",
    "rows_of_batch",
    "rows_of_record",
    "write_arrow",
    "write_csv",
    "write_jsonl",
    "write_parquet",
]

Row = dict[str, Any]
Format = Literal["jsonl", "csv", "arrow", "parquet"]

RECORD_COLUMNS = ("offset", "timestamp", "timestamp_type", "key", "value", "headers")
"""The columns that are written by default."""

OTHER_COLUMNS = (
    *("topic", "partition", "leader_epoch", "producer_id", "producer_epoch", "sequence", "is_transactional"),
    *("is_control", "codec", "magic", "batch_base_offset", "position", "segment_base_offset", "key_size", "value_size"),
)
"""The columns that are written only with `--columns`."""

DAMAGE_COLUMN = "error"
"""The column that describes damage with `--on-damage report`."""

STREAM_SUFFIX = ".arrows"
"""The standard suffix of Arrow's stream format."""

_SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    STREAM_SUFFIX: "arrow",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_COMPRESSED = {".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip", ".br"}


def format_of(path: Path | None, given: Format | None) -> Format:
    """Choose the format: the given one, otherwise that of the file's suffix, otherwise JSON lines.

    *Errors*: `UsageError` if the two differ, and for the suffix of a compressed file.

    >>> format_of(Path("payments.parquet"), None), format_of(None, None), format_of(Path("records"), "csv")
    ('parquet', 'jsonl', 'csv')
    """
    suffix = "" if path is None else path.suffix.lower()
    if suffix in _COMPRESSED:
        raise UsageError(f"{path}: compressed files are not supported; write to - and pipe it into a compressor")
    by_suffix = _SUFFIXES.get(suffix)
    if given is not None and by_suffix is not None and given != by_suffix:
        raise UsageError(f"{path} has the suffix of {by_suffix}, but --format is {given}: change one of them")
    return given or by_suffix or "jsonl"


def write_jsonl(rows: Iterable[Row], out: BinaryIO) -> None:
    """Write one object per line. Bytes are text if they are UTF-8, otherwise `{"base64": …}`."""
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


def rows_of_record(record: Record, columns: Iterable[str]) -> Row:
    """Convert a record to a row."""
    row: Row = {name: getattr(record, name) for name in columns}
    if row.get("timestamp") == -1:
        row["timestamp"] = None
    if "timestamp_type" in row:
        row["timestamp_type"] = int(row["timestamp_type"])
    return row


def rows_of_batch(batch: "pa.RecordBatch") -> Iterator[Row]:
    """Convert a record batch to rows, as `rows_of_record` does for a record."""
    names = batch.schema.names
    columns = [_plain(name, batch.column(name)) for name in names]
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _plain(name: str, column: "pa.Array") -> list[Any]:
    if name == "timestamp":
        return list(column.cast("int64").to_pylist())
    if name == "headers":
        return [[(pair["key"], pair["value"]) for pair in pairs or ()] for pairs in column.to_pylist()]
    return list(column.to_pylist())


def write_csv(schema: "pa.Schema", batches: Iterable["pa.RecordBatch"], out: BinaryIO, *, terminal: bool) -> None:
    """Write CSV with a heading. Bytes are text if they are UTF-8, otherwise `base64:…`; headers and errors are JSON."""
    import pyarrow as pa  # noqa: PLC0415  (an extra)
    from pyarrow import csv  # noqa: PLC0415

    clean: Callable[[str], str] = escape if terminal else str

    def text(value: bytes | str | None) -> str | None:
        if value is None or isinstance(value, str):
            return value if value is None else clean(value)
        try:
            return clean(value.decode())
        except UnicodeDecodeError:
            return "base64:" + base64.b64encode(value).decode()

    def nested(value: object) -> str | None:
        return escape_json(json.dumps(_as_json(value), ensure_ascii=False)) if value else None

    def as_text(name: str, column: "pa.Array") -> "pa.Array":
        if pa.types.is_nested(column.type):
            return pa.array([nested(value) for value in _plain(name, column)], pa.string())
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if any(test(kind) for test in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string)):
            return pa.array([text(value) for value in column.to_pylist()], pa.string())
        return column

    def converted(batch: "pa.RecordBatch") -> "pa.RecordBatch":
        names = batch.schema.names
        return pa.RecordBatch.from_arrays([as_text(name, batch.column(name)) for name in names], names=names)

    empty = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
    with csv.CSVWriter(out, converted(empty).schema) as writer:
        for batch in batches:
            writer.write_batch(converted(batch))


def write_arrow(schema: "pa.Schema", batches: Iterable["pa.RecordBatch"], out: BinaryIO, *, stream: bool) -> None:
    """Write Arrow IPC: the file format, or the stream format for a pipe."""
    from pyarrow import ipc  # noqa: PLC0415  (an extra)

    new = ipc.new_stream if stream else ipc.new_file
    with new(out, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_parquet(schema: "pa.Schema", batches: Iterable["pa.RecordBatch"], out: BinaryIO) -> None:
    """Write Parquet, compressed with zstd."""
    from pyarrow import parquet  # noqa: PLC0415  (an extra)

    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)

"""Writers of records as JSON lines, CSV, Arrow or Parquet."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar

from cordwood.cli.exit_codes import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from cordwood.cli.output import Output

__all__ = [
    "BATCH_BYTES",
    "DAMAGE_COLUMN",
    "OTHER_COLUMNS",
    "RECORD_COLUMNS",
    "STREAM_SUFFIX",
    "SUFFIXES",
    "Format",
    "csv_line",
    "format_of",
    "format_of_suffix",
    "json_line",
    "row_count",
    "write_batches",
    "write_lines",
]

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

BATCH_BYTES = 16 << 20
"""The maximum size of a record batch of Arrow and of a row group of Parquet: readers are faster with large ones."""

STREAM_SUFFIX = ".arrows"
"""The standard suffix of Arrow's stream format."""

SUFFIXES: dict[str, Format] = {
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
"""The formats of files with rows, by their suffixes."""

_COMPRESSED = {".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip", ".br"}


_F = TypeVar("_F", bound=str)


def format_of(path: Path | None, given: Format | None) -> Format:
    """Choose the format of rows: the given one, otherwise that of the file's suffix, without one JSON lines.

    *Errors*: those of `format_of_suffix`.

    >>> format_of(Path("payments.parquet"), None), format_of(None, None), format_of(Path("records"), "csv")
    ('parquet', 'jsonl', 'csv')
    """
    return format_of_suffix(path, given, SUFFIXES) or "jsonl"


def format_of_suffix(path: Path | None, given: _F | None, known: Mapping[str, _F]) -> _F | None:
    """Choose the format: the given one, otherwise that of the file's suffix; `None` without a suffix.

    *known*: the formats of a command by their suffixes.

    *Errors*: `UsageError` if the two differ, for an unknown suffix without a given format, and for the suffix of a
    compressed file.
    """
    suffix = "" if path is None else path.suffix.lower()
    if suffix in _COMPRESSED:
        raise UsageError(f"{path}: compressed files are not supported; write to - and pipe it into a compressor")
    by_suffix = known.get(suffix)
    if given is not None and by_suffix is not None and given != by_suffix:
        raise UsageError(f"{path} has the suffix of {by_suffix}, but --format is {given}: change one of them")
    if suffix and given is None and by_suffix is None:
        raise UsageError(f"-o: expected a file with the suffix {', '.join(known)}, or --format, found {path}")
    return given or by_suffix


def write_lines(blocks: Iterable[tuple[bytes, int]], out: BinaryIO) -> None:
    """Write blocks of lines, each with its number of rows; a reader gets each of them at once."""
    for lines, _ in blocks:
        out.write(lines)
        out.flush()


def json_line(row: Any) -> str:  # noqa: ANN401  (any JSON value)
    r"""Return a row as JSON, without a line end.

    >>> json_line({"group": "é", "offset": None})
    '{"group": "é", "offset": null}'
    """
    import json  # noqa: PLC0415  (most commands do without)

    return json.dumps(row, ensure_ascii=False)


def csv_line(cells: Iterable[Any]) -> str:
    r"""Return a line of CSV, without a line end. Null is an empty cell and an empty text is quoted; a list is JSON.

    >>> csv_line([1, None, "", 'a "b", c', ["x"]])
    '1,,"","a ""b"", c","[""x""]"'
    """
    return ",".join(map(_csv_cell, cells))


def _csv_cell(value: Any) -> str:  # noqa: ANN401  (any value of a row)
    if value is None:
        return ""
    text = json_line(value) if isinstance(value, list | dict) else str(value)
    needs_quotes = not text or any(mark in text for mark in ',"\r\n')
    return '"' + text.replace('"', '""') + '"' if needs_quotes else text


def row_count(batch: "pa.RecordBatch") -> int:
    """Return the number of rows."""
    return int(batch.num_rows)


def write_batches(
    schema: "pa.Schema", batches: Iterable["pa.RecordBatch"], out: BinaryIO, written_format: Format, target: "Output"
) -> None:
    """Write Arrow or Parquet. Arrow is the file format in files, except `.arrows`, and otherwise the stream format."""
    if written_format == "parquet":
        from cordwood.parquet import write_row_groups  # noqa: PLC0415  (an extra)

        write_row_groups(schema, batches, out)
    else:
        is_stream = not target.is_file or (target.path is not None and target.path.suffix.lower() == STREAM_SUFFIX)
        _write_arrow(schema, batches, out, stream=is_stream)


def _write_arrow(schema: "pa.Schema", batches: Iterable["pa.RecordBatch"], out: BinaryIO, *, stream: bool) -> None:
    """Write Arrow IPC: the file format, or the stream format for a pipe.

    A file has one dictionary for a column, and each partition has its own, so `topic` is written as plain strings.
    """
    import pyarrow as pa  # noqa: PLC0415  (an extra)
    from pyarrow import ipc  # noqa: PLC0415

    fields = [field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field for field in schema]
    plain = pa.schema(fields, schema.metadata)
    new = ipc.new_stream if stream else ipc.new_file
    with new(out, plain) as writer:
        for batch in batches:
            writer.write_batch(batch.cast(plain) if plain != schema else batch)

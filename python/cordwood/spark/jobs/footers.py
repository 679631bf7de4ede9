"""The number of records of each partition in a Parquet file, from its footer. Does not use Spark."""

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import ArrowInvalid, parquet

from cordwood.spark.jobs.errors import ExportError

__all__ = ["FileRows", "read_footer", "read_footers"]

_AT_ONCE = 8


@dataclass(frozen=True)
class FileRows:
    """The contents of one file of an export."""

    rows: int
    """Records and rows for damage."""

    size: int
    """Size of the file, bytes."""

    records: dict[int, int]
    """Records by partition. Rows for damage (with `_error`) are not records."""


def read_footer(path: Path) -> FileRows:
    """Read a file's footer, and the column `partition` only if the footer's statistics are not enough.

    *Errors*: `ExportError` if it is not a complete file of an export.
    """
    try:
        return _read_footer(path)
    except (ArrowInvalid, KeyError) as error:
        message = f"{path} was changed or damaged ({error}): restore it, or export again to another output"
        raise ExportError(message, code="export_damaged_file", file=str(path)) from error


def read_footers(paths: Iterable[Path]) -> list[FileRows]:
    """Read several footers, in order, a few concurrently."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(read_footer, paths))


def _read_footer(path: Path) -> FileRows:
    with parquet.ParquetFile(path) as file:
        metadata = file.metadata
        places = {metadata.schema.column(n).path: n for n in range(metadata.num_columns)}
        error = places.get("_error.file")
        records: Counter[int] = Counter()
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            count = group.num_rows
            if error is not None:
                # null in records only
                errors = group.column(error).statistics
                if errors is None or not errors.has_null_count:
                    return _counted(file, path)
                count = errors.null_count
            if count == 0:
                continue
            named = group.column(places["partition"]).statistics
            if named is None or not named.has_min_max or named.min != named.max:
                return _counted(file, path)
            records[named.min] += count
        return FileRows(metadata.num_rows, path.stat().st_size, dict(records))


def _counted(file: Any, path: Path) -> FileRows:  # noqa: ANN401  (pyarrow has no types)
    names = [name for name in ("partition", "_error") if name in file.schema_arrow.names]
    records: Counter[int] = Counter()
    for batch in file.iter_batches(columns=names):
        for row in batch.to_pylist():
            if row.get("_error") is None:
                records[row["partition"]] += 1
    return FileRows(file.metadata.num_rows, path.stat().st_size, dict(records))

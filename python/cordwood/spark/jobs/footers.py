"""How many records a Parquet file has of which partition, as its footer says. No Spark here."""

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
    """What one file of an export holds."""

    rows: int
    """Records, and rows about damage."""

    size: int
    """Bytes of the file."""

    records: dict[int, int]
    """Records by partition. Rows about damage (with `_error`) are none."""


def read_footer(path: Path) -> FileRows:
    """Read a file's footer; only where it does not tell partitions apart, the column `partition` as well.

    *Errors*: `ExportError` where it is not a whole file of an export.
    """
    try:
        return _read_footer(path)
    except (ArrowInvalid, KeyError) as error:
        message = f"{path} is not as it was written ({error}): put it back, or export again to another output"
        raise ExportError(message, code="export_damaged_file", file=str(path)) from error


def read_footers(paths: Iterable[Path]) -> list[FileRows]:
    """Read several, a few at a time, in their order."""
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

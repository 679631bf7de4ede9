"""Parquet files of scans. They need the extra `arrow`."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
from pyarrow import parquet

from cordwood.errors import ConfigError
from cordwood.replaced_file import replacing

if TYPE_CHECKING:
    from cordwood import Scan

__all__ = ["write", "write_row_groups"]

_ROW_GROUP_BYTES = 16 << 20


def write(scan: "Scan", path: str | os.PathLike[str]) -> None:
    """Write the rows of a scan to a file, which appears when it is complete."""
    from cordwood import classify  # noqa: PLC0415  (it imports this package)

    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "the folder of the new file does not exist", str(target.parent))
    if classify(target.parent).kind == "partition":
        raise ConfigError(
            f"path: expected a file outside of partition directories, found {target}",
            argument="path",
            expected="a file outside of partition directories",
            found=str(target),
        )
    with replacing(target) as out:
        write_row_groups(scan.schema, scan, out)


def write_row_groups(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> None:
    """Write record batches, in row groups of about 16 MiB, compressed with zstd."""
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        pending: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            pending.append(batch)
            size += batch.nbytes
            if size >= _ROW_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(pending))
                pending, size = [], 0
        if pending:
            writer.write_table(pa.Table.from_batches(pending))

"""`Scan` and `Records`: the two ways to read records, and what they report."""

from collections.abc import Iterator
from typing import Literal, Self, final

import pandas as pd
import polars as pl
import pyarrow as pa

from cordwood._stubs.arguments import FilePath
from cordwood._stubs.cat import _Zone
from cordwood._stubs.record import Record

@final
class Scan:
    """A range of one or more logs, to be read as Arrow columns.

    Dataframe libraries read it through `__arrow_c_stream__`. Nothing is read until the scan is iterated or converted,
    and each reading starts at the beginning. The arguments `max_rows` and `max_bytes` limit the size of a batch; a
    reading has the memory of up to three, and with *threads* that of up to eight for each thread. No Python object is
    made for a record. Other threads run during a reading, and Ctrl-C stops it. A scan can be pickled.

    Iteration and the methods `to_…` raise the errors of cordwood. A library that reads `__arrow_c_stream__` by itself
    raises its own errors instead, also for Ctrl-C (pyarrow: `ArrowInvalid`).

    >>> scan = cw.Log("tests/golden/01-plain/orders-0").scan(start_offset=1400)
    >>> sum(batch.num_rows for batch in scan)
    100
    """

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns. Needs the extra `arrow`."""
    @property
    def damaged_ranges(self) -> list[DamagedRange]:
        """The damaged ranges that the last reading has omitted so far; empty with `on_damage="raise"`."""
    @property
    def stats(self) -> ScanStats:
        """The counters of the last reading, so far."""
    @property
    def first_uncommitted(self) -> tuple[str, int] | None:
        """The first record of the last reading that `read_committed` omits: its partition directory and offset.

        The record belongs to a transaction that was aborted or has not ended. `None` if there is no such record.

        *Cost*: if the reading ended inside a transaction, the log is read up to its marker.

        >>> scan = cw.Log("tests/golden/11-transactions/payments-0").scan(columns=["offset"])
        >>> scan.to_arrow().num_rows, scan.first_uncommitted[1]
        (889, 36)
        """
    def to_arrow(self) -> pa.Table:
        """Read all rows into a `pyarrow.Table`. Needs the extra `arrow`."""
    def to_pandas(self) -> pd.DataFrame:
        """Read all rows into a `pandas.DataFrame`. Needs the extra `pandas`."""
    def to_polars(self) -> pl.DataFrame:
        """Read all rows into a `polars.DataFrame`. Needs the extra `polars`.

        Keys and values are views, as with `key_type="binary_view"` or `"string_view"` of `Log.scan`.
        """
    def to_parquet(self, path: FilePath) -> None:
        """Write all rows to a Parquet file, compressed with zstd. Needs the extra `arrow`.

        The file appears when it is complete, and then replaces an existing one. A row group has about 16 MiB, so that
        the memory does not depend on the number of rows.

        *Errors*: `ConfigError` for a path inside a partition directory; `OSError`.

        >>> import tempfile, pyarrow.parquet
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     cw.Log("tests/golden/01-plain/orders-0").scan(key="k15").to_parquet(folder + "/k15.parquet")
        ...     pyarrow.parquet.read_metadata(folder + "/k15.parquet").num_rows
        11
        """
    def count(self) -> int:
        """Count the rows, without those for damage.

        Without *key*, *key_prefix*, *grep*, *last*, *latest* and *include_control*, the headers of the batches are
        enough where no time range cuts a batch. A record out of place in its batch, which consumers leave out, is not
        counted: an uncompressed batch is checked for them, unless `check_crcs=False`; a broker stores none in
        compressed batches.

        >>> log = cw.Log("tests/golden/01-plain/orders-0")
        >>> log.scan().count(), log.scan(start_offset=1000, grep="(?i)FJORD").count()
        (1500, 215)
        """
    def _lines(
        self,
        text_format: Literal["jsonl", "csv", "terminal_csv", "raw", "terminal_raw"],
        *,
        headings: bool = True,
        zone: _Zone | None = None,
    ) -> _Lines:
        """Read the rows as text, for `cordwood cat`: blocks of whole lines, each with its number of rows.

        A block is complete with 1 MiB of text, or if there is any, after reading 16 MiB of the log.
        With a filter it may then be empty.
        The rows before an error are returned before it is raised. Rows are records, also of `Log.batches`, and the
        arguments that concern Arrow, such as `header_keys` and `threads`, do not change them. *zone*: of timestamps in
        CSV, instead of UTC.
        """
    def _repr_html_(self) -> str:
        """Return the first five rows as an HTML table, for a notebook. An error is shown as its text."""
    def __iter__(self) -> Iterator[pa.RecordBatch]: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

@final
class _Lines(Iterator[tuple[bytes, int]]):
    """An iterator of blocks of lines, from `Scan._lines()`."""

    @property
    def last_offset(self) -> int:
        """The offset of the last record in the blocks so far, of the log that is being read; -1 before the first."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[bytes, int]: ...

@final
class Records(Iterator[Record]):
    """An iterator of records, from `Log.records()`. It reads up to a few hundred records ahead."""

    @property
    def damaged_ranges(self) -> list[DamagedRange]:
        """The damaged ranges that were omitted so far; empty with `on_damage="raise"`."""
    @property
    def stats(self) -> ScanStats:
        """The counters so far. They include the records read ahead."""
    @property
    def first_uncommitted(self) -> tuple[str, int] | None:
        """As `Scan.first_uncommitted`, of the records returned so far."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> Record: ...

@final
class ScanStats:
    """The counters of a reading."""

    @property
    def records(self) -> int:
        """The number of records that were returned."""
    @property
    def batches(self) -> int:
        """The number of batches that were read (for `Log.batches`: the number of headers)."""
    @property
    def batches_skipped(self) -> int:
        """The number of batches that were skipped by their headers and not decompressed."""
    @property
    def batches_decompressed(self) -> int:
        """The number of batches that were decompressed.

        A v0 or v1 wrapper that is only opened to find its base offset is not counted.
        """
    @property
    def segments_opened(self) -> int:
        """The number of segments whose `.log` was read."""
    @property
    def bytes_read(self) -> int:
        """The size of the batches that were read, in bytes."""
    @property
    def offset_gaps(self) -> int:
        """The number of places between two batches where offsets are missing.

        Compaction and aborted producers leave such gaps; they are not damage.
        """
    @property
    def lost_gaps(self) -> int:
        """The number of gaps between two batches of a segment where batches were lost: nothing explains them.

        Not compaction (`Log.is_compacted`), nor damage that was left out, nor a truncation inside a batch. A gap counts
        if some of its offsets are in the range of the scan. The warnings of the log name the first 1,000.
        """

@final
class DamagedRange:
    """A damaged range of a segment, which a scan omitted."""

    @property
    def file(self) -> str:
        """The path of the `.log` file."""
    @property
    def start_position(self) -> int:
        """The first byte of the range (inclusive), in bytes from the start of the file."""
    @property
    def end_position(self) -> int:
        """The end of the range (exclusive), in bytes from the start of the file."""
    @property
    def start_offset(self) -> int:
        """The first offset that may be missing (inclusive)."""
    @property
    def end_offset(self) -> int | None:
        """The end of the offsets that may be missing (exclusive); `None` if no valid batch follows in the log."""
    @property
    def is_tail(self) -> bool:
        """Whether this is a torn tail: the range reaches the end of the log, and no valid batch follows."""
    @property
    def reason(self) -> str:
        """The cause: what was expected and what was found."""
